import type { LogRecord } from '../../contract/backend-streams.ts';
import { readContainerLog } from '../logs/backend-log.ts';
import type { WorkerContext } from '../context.ts';
import { isEngineError } from '../docker/engine-error.ts';
import { removeOwnMount } from './mounts.ts';

/** Twenty megabytes take a second. Without a limit, an engine that stops sending would delay the end of the backend forever. */
const readLimitMs = 60_000;

/**
 * Keeps the log of a backend's container, then removes the container, running or not, then the backend's own folder: a worker
 * that dies in between completes this after its restart. Throws if the engine does not answer, and when the worker closes.
 */
export async function removeContainer(worker: WorkerContext, backend: string, container: string): Promise<void> {
  const { containers } = worker.engine;
  // Output that it writes after its log was read would be lost.
  await containers.signal(container, 'SIGKILL');
  await keepLog(worker, backend);
  await containers.remove(container);
  await removeOwnMount(worker, backend);
}

async function keepLog(worker: WorkerContext, backend: string): Promise<void> {
  try {
    await worker.keptLogs.keep(backend, () => readInTime(worker, backend), worker.closing);
  } catch (error) {
    worker.closing.throwIfAborted();
    // The log exists as long as its container: try again later.
    if (isEngineError(error, 'unavailable')) throw error;
    if (!isEngineError(error, 'no-container')) worker.log.warn({ err: error, backend }, 'Cannot keep the log');
  }
}

async function* readInTime(worker: WorkerContext, backend: string): AsyncGenerator<LogRecord[], void, void> {
  const late = new AbortController();
  using _limit = worker.clock.after(readLimitMs, () =>
    late.abort(new Error('The engine did not send the log in time')),
  );
  yield* readContainerLog(worker, { backend, signal: AbortSignal.any([worker.closing, late.signal]) }, true);
}
