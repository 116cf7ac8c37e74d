import { addAbortSignal } from 'node:stream';
import type { Readable } from 'node:stream';
import type Docker from 'dockerode';
import type { PullProgress } from '../../contract/messages.ts';
import { linesOf } from '../../core/text/lines.ts';
import { EngineError, calling, isContainerdAway, isEngineError } from './engine-error.ts';
import { PullProgressSum } from './pull-progress.ts';
import type { PullLine } from './pull-progress.ts';

export interface PullOptions {
  /** A bearer token that the registry takes for this pull. */
  readonly token: string;
  readonly signal: AbortSignal;
  /** Is called with each step that the engine reports. */
  readonly onProgress?: (progress: PullProgress) => void;
}

export interface Images {
  /** Whether this machine has an image, by digest (`<registry>/<repository>@<digest>`). */
  has(reference: string): Promise<boolean>;
  /**
   * Pulls an image by digest (`<registry>/<repository>@<digest>`). Throws `refused` with what the registry or the engine
   * said, and the signal's reason when it aborts: the engine then stops fetching.
   */
  pull(reference: string, options: PullOptions): Promise<void>;
}

export class DockerImages implements Images {
  readonly #docker: Docker;
  readonly #streaming: Docker;

  /** @param streaming - the same engine, which may be silent for long */
  constructor(docker: Docker, streaming: Docker) {
    this.#docker = docker;
    this.#streaming = streaming;
  }

  async has(reference: string): Promise<boolean> {
    try {
      await calling(() => this.#docker.getImage(reference).inspect());
      return true;
    } catch (error) {
      if (isEngineError(error, 'no-image')) return false;
      throw error;
    }
  }

  async pull(reference: string, { token, signal, onProgress }: PullOptions): Promise<void> {
    signal.throwIfAborted();
    try {
      const stream = (await calling(() =>
        this.#streaming.pull(reference, { authconfig: { registrytoken: token }, abortSignal: signal }),
      )) as Readable;
      await calling(() => readToEnd(addAbortSignal(signal, stream), onProgress));
    } catch (error) {
      signal.throwIfAborted();
      throw error;
    }
  }
}

interface EngineLine extends PullLine {
  readonly error?: unknown;
}

/** The engine answers 200 before it begins, and reports failures as a line of the body. */
async function readToEnd(stream: Readable, onProgress?: (progress: PullProgress) => void): Promise<void> {
  const sum = new PullProgressSum();
  for await (const text of linesOf(stream)) {
    const line = parseLine(text);
    if (typeof line.error === 'string') {
      throw new EngineError(isContainerdAway(line.error) ? 'unavailable' : 'refused', line.error);
    }
    const progress = sum.add(line);
    if (progress) onProgress?.(progress);
  }
}

function parseLine(text: string): EngineLine {
  try {
    return JSON.parse(text) as EngineLine;
  } catch {
    return {};
  }
}
