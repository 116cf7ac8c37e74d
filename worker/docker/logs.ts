import { addAbortSignal } from 'node:stream';
import type { Readable } from 'node:stream';
import type Docker from 'dockerode';
import { callEngine, engineError } from './engine-error.ts';
import { LogFrames } from './log-frames.ts';
import type { LogEntry } from './log-frames.ts';

export interface LogOptions {
  /** Default: everything that is kept. */
  readonly since: string | undefined;
  /** Whether the container is followed until it exits. */
  readonly follow: boolean;
}

/**
 * Reads the log of a container since the time of an entry, and may follow it until the container exits. The first batch is empty
 * and comes as soon as the engine answers. The engine may lose track of a container that writes much, and end too early. Throws
 * `no-container`, and the signal's reason when it aborts.
 *
 * @param docker - must have no time limit between two answers
 */
export async function* readLog(
  docker: Docker,
  container: string,
  { since, follow }: LogOptions,
  signal: AbortSignal,
): AsyncGenerator<LogEntry[], void, void> {
  try {
    const stream = await callEngine(async () => await openLog(docker, container, { since, follow }, signal));
    addAbortSignal(signal, stream);
    yield [];
    const frames = new LogFrames();
    for await (const chunk of stream as AsyncIterable<Buffer>) {
      const entries = frames.add(chunk);
      if (entries.length > 0) yield entries;
    }
  } catch (error) {
    signal.throwIfAborted();
    throw engineError(error);
  }
}

/** As `logs` of the library, which holds the whole log in one buffer unless it is followed. */
async function openLog(
  docker: Docker,
  container: string,
  { since, follow }: LogOptions,
  signal: AbortSignal,
): Promise<Readable> {
  const request = {
    path: `/containers/${container}/logs?`,
    method: 'GET',
    abortSignal: signal,
    isStream: true,
    statusCodes: { 200: true, 404: 'no such container', 500: 'server error' },
    options: { stdout: true, stderr: true, timestamps: true, follow, ...(since !== undefined && { since }) },
  };
  const modem = docker.modem as { dial: (options: object, done: (error: Error | null, log: Readable) => void) => void };
  return await new Promise((resolve, reject) => {
    modem.dial(request, (error, log) => (error ? reject(error) : resolve(log)));
  });
}
