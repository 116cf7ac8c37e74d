import { addAbortSignal } from 'node:stream';
import type { Readable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import type Docker from 'dockerode';
import type { Log } from '../../core/log/log.ts';
import { calling } from './engine-error.ts';
import { backendLabel, nodeLabel } from './labels.ts';
import { linesOf } from '../../core/text/lines.ts';

/** `died`: the container's first process has ended. `out-of-memory`: some process in it was killed for its memory limit. */
export interface ContainerEvent {
  readonly kind: 'died' | 'out-of-memory';
  readonly container: string;
  readonly backend: string;
  /** Of `died`, if the engine said it. */
  readonly exitCode: number | undefined;
}

export interface EventListener {
  /** The stream is open, for the first time or after a gap: what happened before must be looked up. */
  onOpen(): void;
  onEvent(event: ContainerEvent): void;
}

export interface Events {
  /** Follows this node's containers until the signal aborts; opens the stream anew whenever it breaks. Never throws. */
  follow(listener: EventListener, signal: AbortSignal): Promise<void>;
}

/** How long to wait before opening the stream again: at once after a hiccup, gently while the engine is down. */
const firstPauseMs = 100;
const longestPauseMs = 5_000;

/** An engine answers before anything has happened. */
const openTimeoutMs = 10_000;

export class DockerEvents implements Events {
  readonly #docker: Docker;
  readonly #node: string;
  readonly #log: Log;

  constructor(docker: Docker, node: string, log: Log) {
    this.#docker = docker;
    this.#node = node;
    this.#log = log;
  }

  async follow(listener: EventListener, signal: AbortSignal): Promise<void> {
    let pauseMs = firstPauseMs;
    while (!signal.aborted) {
      try {
        const stream = await this.#open(signal);
        pauseMs = firstPauseMs;
        listener.onOpen();
        await read(stream, listener, signal);
      } catch (error) {
        if (!signal.aborted) this.#log.warn({ err: error }, 'Engine events cannot be followed, trying again');
      }
      await sleep(pauseMs, undefined, { signal, ref: false }).catch(() => {});
      pauseMs = Math.min(2 * pauseMs, longestPauseMs);
    }
  }

  async #open(signal: AbortSignal): Promise<Readable> {
    const late = new AbortController();
    const limit = setTimeout(() => late.abort(), openTimeoutMs);
    try {
      const stream = await calling(() =>
        this.#docker.getEvents({
          // The engine answers a moment before it listens; what happens in between is replayed from here.
          since: Math.floor(Date.now() / 1000),
          filters: { type: ['container'], event: ['die', 'oom'], label: [`${nodeLabel}=${this.#node}`] },
          abortSignal: AbortSignal.any([signal, late.signal]),
        }),
      );
      return stream as Readable;
    } finally {
      clearTimeout(limit);
    }
  }
}

async function read(stream: Readable, listener: EventListener, signal: AbortSignal): Promise<void> {
  addAbortSignal(signal, stream);
  for await (const line of linesOf(stream)) {
    const event = parse(line);
    if (event) listener.onEvent(event);
  }
}

interface DockerEvent {
  readonly Action?: string;
  readonly Actor?: { readonly ID?: string; readonly Attributes?: Readonly<Record<string, string>> };
}

function parse(line: string): ContainerEvent | undefined {
  if (line.trim() === '') return undefined;
  const { Action, Actor } = JSON.parse(line) as DockerEvent;
  const backend = Actor?.Attributes?.[backendLabel];
  if (Actor?.ID === undefined || backend === undefined || (Action !== 'die' && Action !== 'oom')) return undefined;
  const exitCode = Number(Actor.Attributes?.['exitCode'] ?? Number.NaN);
  return {
    kind: Action === 'die' ? 'died' : 'out-of-memory',
    container: Actor.ID,
    backend,
    exitCode: Number.isInteger(exitCode) ? exitCode : undefined,
  };
}
