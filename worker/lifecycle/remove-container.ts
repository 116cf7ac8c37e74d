import type { LogRecord } from '../../contract/backend-streams.ts';
import { readContainerLog } from '../logs/backend-log.ts';
import type { WorkerContext } from '../context.ts';
import { isEngineError } from '../docker/engine-error.ts';
import { removeOwnMount } from './own-mounts.ts';

/** Twenty megabytes take a second. An engine that has not told them by now would hold up the end of the backend for ever. */
const readLimitMs = 60_000;

/**
 * Removes a backend's container, running or not, after keeping its log, then its own folder: a worker that dies in between does
 * the rest when it is started again. Throws when the
 * engine does not answer, and when the worker closes.
 */
export async function removeContainer(worker: WorkerContext, backend: string, container: string): Promise<void> {
  const { containers } = worker.engine;
  // What it would still write while its log is read would be lost.
  if ((await containers.inspect(container))?.phase === 'running') await containers.signal(container, 'SIGKILL');
  await keepLog(worker, backend);
  await containers.remove(container);
  await removeOwnMount(worker, backend);
}

async function keepLog(worker: WorkerContext, backend: string): Promise<void> {
  try {
    await worker.keptLogs.keep(backend, () => readInTime(worker, backend), worker.closing);
  } catch (error) {
    worker.closing.throwIfAborted();
    // It is there as long as its container is.
    if (isEngineError(error, 'unavailable')) throw error;
    if (!isEngineError(error, 'no-container')) worker.log.warn({ err: error, backend }, 'Log cannot be kept');
  }
}

async function* readInTime(worker: WorkerContext, backend: string): AsyncGenerator<LogRecord[], void, void> {
  const late = new AbortController();
  const giveUp = () => late.abort(new Error('The engine does not tell the log in time'));
  using _limit = worker.clock.after(readLimitMs, giveUp);
  yield* readContainerLog(worker, { backend, signal: AbortSignal.any([worker.closing, late.signal]) }, true);
}
