import { addAbortSignal } from 'node:stream';
import type { Readable } from 'node:stream';
import type Docker from 'dockerode';
import { EngineError, calling } from './engine-error.ts';
import { linesOf } from './lines.ts';

export interface PullOptions {
  /** A bearer token that the registry takes for this pull. */
  readonly token: string;
  readonly signal: AbortSignal;
}

export interface Images {
  /**
   * Fetches an image by digest (`<registry>/<repository>@<digest>`). Throws `refused` with what the registry or the engine
   * said, and the signal's reason when it aborts: the engine then stops fetching.
   */
  pull(reference: string, options: PullOptions): Promise<void>;
}

export class DockerImages implements Images {
  readonly #docker: Docker;

  constructor(docker: Docker) {
    this.#docker = docker;
  }

  async pull(reference: string, { token, signal }: PullOptions): Promise<void> {
    signal.throwIfAborted();
    try {
      const stream = (await calling(() =>
        this.#docker.pull(reference, { authconfig: { registrytoken: token }, abortSignal: signal }),
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
    if (failure !== undefined) throw new EngineError('refused', failure);
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
