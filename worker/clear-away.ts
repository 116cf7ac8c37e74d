import { readContainerLog } from './backend-log.ts';
import type { WorkerContext } from './context.ts';
import { isEngineError } from './docker/engine-error.ts';

/** Twenty megabytes take a second. An engine that has not told them by now would hold up the end of the backend for ever. */
const readLimitMs = 60_000;

/**
 * Removes a backend's container, running or not, after keeping its log: whoever dies in between does both again. Throws when the
 * engine does not answer, and when the worker closes.
 */
export async function clearAway(worker: WorkerContext, backend: string, container: string): Promise<void> {
  const { containers } = worker.engine;
  // What it would still write while its log is read would be lost.
  if ((await containers.inspect(container))?.phase === 'running') await containers.signal(container, 'SIGKILL');
  await keepLog(worker, backend);
  await containers.remove(container);
}

async function keepLog(worker: WorkerContext, backend: string): Promise<void> {
  const late = new AbortController();
  using _limit = worker.clock.after(readLimitMs, () =>
    late.abort(new Error('The engine does not tell the log in time')),
  );
  const signal = AbortSignal.any([worker.closing, late.signal]);
  try {
    await worker.keptLogs.keep(backend, () => readContainerLog(worker, { backend, signal }, true), signal);
  } catch (error) {
    worker.closing.throwIfAborted();
    // It is there as long as its container is.
    if (isEngineError(error, 'unavailable')) throw error;
    if (!isEngineError(error, 'no-container')) worker.log.warn({ err: error, backend }, 'log cannot be kept');
  }
}
