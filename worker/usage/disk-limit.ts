/** Enforces the limit of the container's own file system, if the storage driver of the engine does not. */
import { repeatUntilClosed } from '../close.ts';
import type { WorkerContext } from '../context.ts';
import type { Run } from '../lifecycle/run.ts';
import { stopBackend } from '../lifecycle/stop.ts';

/** A check makes the engine add up the sizes of all files. A disk that writes 1 GB/s has space for the data until the next check. */
const checkEveryMs = 30_000;

/** Checks regularly until disposed, one backend after another. */
export function beginLimitingDisk(worker: WorkerContext): AsyncDisposable {
  return repeatUntilClosed(worker.machineClock, checkEveryMs, async () => await checkDiskUsage(worker));
}

/** Stops the backends that have written more than the limit. */
async function checkDiskUsage(worker: WorkerContext): Promise<void> {
  const { diskBytesLimit } = worker.settings;
  if (diskBytesLimit === undefined) return;
  for (const run of worker.runs.values()) {
    if (worker.closing.aborted) return;
    try {
      await check(worker, run, diskBytesLimit);
    } catch (error) {
      if (!run.signal.aborted)
        worker.log.debug({ err: error, backend: run.id }, 'Cannot measure the disk usage of a backend');
    }
  }
}

async function check(worker: WorkerContext, run: Run, limitBytes: number): Promise<void> {
  const { container } = run;
  if (!container?.started || run.isFinalizing || run.stopKind !== undefined) return;
  // The engine answers this request at once, but reads the size of each file for the next one.
  if ((await worker.engine.containers.inspect(container.id))?.hasDiskLimit) return;
  const writtenBytes = await worker.engine.containers.writtenBytes(container.id);
  if (writtenBytes <= limitBytes || run.stopKind !== undefined) return;
  run.fail(`Wrote ${writtenBytes} bytes to the file system of its container, the limit is ${limitBytes}`);
  stopBackend(worker, run, 'hard', 'external');
}
