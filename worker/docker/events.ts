import { addAbortSignal } from 'node:stream';
import type { Readable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import type Docker from 'dockerode';
import type { Log } from '../../core/log/log.ts';
import { linesOf } from '../../core/text/lines.ts';
import { callEngine } from './engine-error.ts';
import { backendLabel, nodeLabel } from './labels.ts';

/** `exited`: the container's first process exited. `out-of-memory`: the kernel killed a process in it for its memory limit. */
export interface ContainerEvent {
  readonly kind: 'exited' | 'out-of-memory';
  readonly container: string;
  readonly backend: string;
  /** Of `exited`, if the engine reported it. */
  readonly exitCode: number | undefined;
}

export interface EventListener {
  /** The stream is open, for the first time or after a gap: the listener must look up what happened before. */
  onOpen(): void;
  /** An event, which may be reported again after a gap. */
  onEvent(event: ContainerEvent): void;
}

interface EventsOptions {
  readonly node: string;
  readonly log: Log;
  readonly signal: AbortSignal;
}

/** The pauses before the stream is opened again: short after a brief failure, long while the engine is down. */
const firstPauseMs = 100;
const longestPauseMs = 5_000;

/** The engine answers at once, before the first event. */
const openTimeoutMs = 10_000;

/** Follows the containers of a node until the signal aborts, and reopens the stream when it breaks. Never throws. */
export async function followEvents(
  docker: Docker,
  { node, log, signal }: EventsOptions,
  listener: EventListener,
): Promise<void> {
  let pauseMs = firstPauseMs;
  let sinceSeconds = 0;
  while (!signal.aborted) {
    try {
      const stream = await open(docker, { node, sinceSeconds }, signal);
      pauseMs = firstPauseMs;
      listener.onOpen();
      addAbortSignal(signal, stream);
      for await (const line of linesOf(stream)) {
        if (line.trim() === '') continue;
        const event = JSON.parse(line) as DockerEvent;
        sinceSeconds = event.time ?? sinceSeconds;
        const ofContainer = containerEvent(event);
        if (ofContainer) listener.onEvent(ofContainer);
      }
    } catch (error) {
      if (!signal.aborted) log.warn({ err: error }, 'Cannot follow the events of the engine, trying again');
    }
    await sleep(pauseMs, undefined, { signal, ref: false }).catch(() => {});
    pauseMs = Math.min(2 * pauseMs, longestPauseMs);
  }
}

async function open(
  docker: Docker,
  { node, sinceSeconds }: { readonly node: string; readonly sinceSeconds: number },
  signal: AbortSignal,
): Promise<Readable> {
  const late = new AbortController();
  const limit = setTimeout(() => late.abort(), openTimeoutMs);
  try {
    const stream = await callEngine(() =>
      docker.getEvents({
        // The engine answers a moment before it listens, and replays earlier events, of which it keeps 256. This is the second of
        // the last event by the engine's clock: that of this process may be ahead.
        since: sinceSeconds,
        filters: { type: ['container'], event: ['die', 'oom'], label: [`${nodeLabel}=${node}`] },
        abortSignal: AbortSignal.any([signal, late.signal]),
      }),
    );
    return stream as Readable;
  } finally {
    clearTimeout(limit);
  }
}

interface DockerEvent {
  /** In seconds, by the engine's clock. */
  readonly time?: number;
  readonly Action?: string;
  readonly Actor?: { readonly ID?: string; readonly Attributes?: Readonly<Record<string, string>> };
}

function containerEvent({ Action, Actor }: DockerEvent): ContainerEvent | undefined {
  const backend = Actor?.Attributes?.[backendLabel];
  if (Actor?.ID === undefined || backend === undefined || (Action !== 'die' && Action !== 'oom')) return undefined;
  const exitCode = Number(Actor.Attributes?.['exitCode'] ?? Number.NaN);
  return {
    kind: Action === 'die' ? 'exited' : 'out-of-memory',
    container: Actor.ID,
    backend,
    exitCode: Number.isInteger(exitCode) ? exitCode : undefined,
  };
}
