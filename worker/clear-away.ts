import { readContainerLog } from './backend-log.ts';
import type { WorkerContext } from './context.ts';
import { isEngineError } from './docker/engine-error.ts';

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
  const signal = worker.closing;
  try {
    await worker.keptLogs.keep(backend, () => readContainerLog(worker, { backend, signal }, true), signal);
  } catch (error) {
    signal.throwIfAborted();
    // It is there as long as its container is.
    if (isEngineError(error, 'unavailable')) throw error;
    if (!isEngineError(error, 'no-container')) worker.log.warn({ err: error, backend }, 'log cannot be kept');
  }
}
