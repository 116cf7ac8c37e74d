import { addAbortSignal } from 'node:stream';
import type { Readable } from 'node:stream';
import type Docker from 'dockerode';
import { callEngine, engineError } from './engine-error.ts';
import { LogFrames } from './log-frames.ts';
import type { LogEntry } from './log-frames.ts';

/**
 * Reads what a container has written since a time (of entries; default: everything that is kept), and follows it until the
 * container exits. The first batch is empty and comes as soon as the engine answers. The engine may lose track of a container that
 * writes much, and end too early. Throws `no-container`, and the signal's reason when it aborts.
 *
 * @param docker - must have no time limit between two answers
 */
export async function* followLog(
  docker: Docker,
  container: string,
  { since, signal }: { readonly since: string | undefined; readonly signal: AbortSignal },
): AsyncGenerator<LogEntry[], void, void> {
  const options = { follow: true, stdout: true, stderr: true, timestamps: true, abortSignal: signal } as const;
  try {
    const stream = (await callEngine(() =>
      // The types want a number, which cannot hold nanoseconds.
      docker
        .getContainer(container)
        .logs({ ...options, ...(since !== undefined && { since: since as unknown as number }) }),
    )) as unknown as Readable;
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
