import { addAbortSignal } from 'node:stream';
import type { Readable } from 'node:stream';
import type Docker from 'dockerode';
import { calling, engineError } from './engine-error.ts';
import { LogFrames } from './log-frames.ts';
import type { LogEntry } from './log-frames.ts';

export interface Logs {
  /**
   * What the container of a backend has written since a time (of entries; default: all that is kept), and then what it writes,
   * until it ends. The first of what comes, as soon as the engine answers, is empty. The engine may lose track of a container
   * that writes much, and end too early. Throws `no-container`, and the signal's reason when that aborts.
   */
  follow(backend: string, since: string | undefined, signal: AbortSignal): AsyncGenerator<LogEntry[], void, void>;
}

export class DockerLogs implements Logs {
  readonly #docker: Docker;
  readonly #containerName: (backend: string) => string;

  /** `docker` must let the engine be silent for as long as it likes. */
  constructor(docker: Docker, containerName: (backend: string) => string) {
    this.#docker = docker;
    this.#containerName = containerName;
  }

  async *follow(
    backend: string,
    since: string | undefined,
    signal: AbortSignal,
  ): AsyncGenerator<LogEntry[], void, void> {
    const options = { follow: true, stdout: true, stderr: true, timestamps: true, abortSignal: signal } as const;
    const container = this.#docker.getContainer(this.#containerName(backend));
    try {
      const stream = (await calling(() =>
        // The types want a number, which has no place for nanoseconds.
        container.logs({ ...options, ...(since !== undefined && { since: since as unknown as number }) }),
      )) as unknown as Readable;
      addAbortSignal(signal, stream);
      yield [];
      const frames = new LogFrames();
      for await (const chunk of stream as AsyncIterable<Buffer>) {
        const entries = frames.take(chunk);
        if (entries.length > 0) yield entries;
      }
    } catch (error) {
      signal.throwIfAborted();
      throw engineError(error);
    }
  }
}
