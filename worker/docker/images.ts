import { addAbortSignal } from 'node:stream';
import type { Readable } from 'node:stream';
import type Docker from 'dockerode';
import { linesOf } from '../../core/text/lines.ts';
import { EngineError, calling, isContainerdAway, isEngineError } from './engine-error.ts';

export interface PullOptions {
  /** A bearer token that the registry takes for this pull. */
  readonly token: string;
  readonly signal: AbortSignal;
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

  async pull(reference: string, { token, signal }: PullOptions): Promise<void> {
    signal.throwIfAborted();
    try {
      const stream = (await calling(() =>
        this.#streaming.pull(reference, { authconfig: { registrytoken: token }, abortSignal: signal }),
      )) as Readable;
      await calling(() => readToEnd(addAbortSignal(signal, stream)));
    } catch (error) {
      signal.throwIfAborted();
      throw error;
    }
  }
}

/** The engine answers 200 before it begins, and tells failures as a line of the body. */
async function readToEnd(stream: Readable): Promise<void> {
  for await (const line of linesOf(stream)) {
    const failure = failureIn(line);
    if (failure !== undefined) throw new EngineError(isContainerdAway(failure) ? 'unavailable' : 'refused', failure);
  }
}

function failureIn(line: string): string | undefined {
  try {
    const { error } = JSON.parse(line) as { error?: unknown };
    return typeof error === 'string' ? error : undefined;
  } catch {
    return undefined;
  }
}
