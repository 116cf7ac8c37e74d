/** Adopts backends that are assigned to this node and have no run here: after a restart, or when a message was lost. */
import { backends, isEnding, rank } from '../../model/backend.ts';
import type { Backend } from '../../model/backend.ts';
import { becomeReadyWhenListening } from '../lifecycle/become-ready.ts';
import { finalize } from '../lifecycle/finalize.ts';
import type { WorkerContext } from '../context.ts';
import type { ListedContainer } from '../docker/containers.ts';
import { isEngineError } from '../docker/engine-error.ts';
import { checkContainer } from '../lifecycle/container-exit.ts';
import { readImage } from '../lifecycle/read-image.ts';
import { keepKey } from '../leases/leases.ts';
import { newRun } from '../lifecycle/run.ts';
import type { Run } from '../lifecycle/run.ts';
import { beginSpawn } from '../lifecycle/spawn.ts';
import { applyStopRequest, stopBackend } from '../lifecycle/stop.ts';

/** Adopts a backend if it is live, assigned to this node and has no run yet, with the container that was found for it. */
export async function adopt(worker: WorkerContext, id: string, container: ListedContainer | undefined): Promise<void> {
  if (hasRun(worker, id)) return;
  // Read now, after the container was found: without a run, this node does not end it.
  const backend = await worker.store.get(backends, id);
  if (!backend?.live || backend.node !== worker.settings.node || hasRun(worker, id)) return;
  const now = worker.clock.now();
  const run = newRun(worker, backend, { at: now, pausedMs: pausedMsIn(backend, now) });
  worker.log.info({ backend: run.id, status: backend.status, container: container?.phase }, 'Backend adopted');
  try {
    await adoptWith(worker, run, container);
  } catch (error) {
    // The next pass starts again.
    worker.runs.delete(run.id);
    run.finish();
    throw error;
  }
}

function hasRun(worker: WorkerContext, id: string): boolean {
  return worker.runs.has(id) || worker.claiming.has(id);
}

async function adoptWith(worker: WorkerContext, run: Run, container: ListedContainer | undefined): Promise<void> {
  const hasExited = container?.phase === 'exited';
  const state = container && !hasExited ? await worker.engine.containers.inspect(container.id) : undefined;
  // Also before its start: an earlier worker may have requested that a moment ago.
  if (state?.address !== undefined) await restoreAddress(worker, run, state.address);
  if (!container || (state ?? container).phase === 'created') {
    adoptUnstarted(worker, run, container);
    return;
  }
  run.containerStarted(container.id);
  if (state?.phase === 'running') await adoptRunning(worker, run);
  else await checkContainer(worker, run, hasExited ? null : undefined);
}

function adoptUnstarted(worker: WorkerContext, run: Run, container: ListedContainer | undefined): void {
  if (container) run.containerCreated(container.id);
  if (isEnding(run.backend)) applyStopRequest(worker, run, run.backend);
  else if (container || rank(run.backend.status) < rank('starting')) void beginSpawn(worker, run);
  else void finalize(worker, run, { exitCode: null, reason: 'lost' });
}

async function adoptRunning(worker: WorkerContext, run: Run): Promise<void> {
  await readOwnImage(worker, run);
  await run.containerLease?.open();
  void keepKey(worker, run, (kind) => stopBackend(worker, run, kind, 'keyexpired'));
  if (isEnding(run.backend)) applyStopRequest(worker, run, run.backend);
  else if (run.backend.readyAt === undefined) resumeWaiting(worker, run);
}

/** If the image was removed by force, its container is treated as one of an image without settings. */
async function readOwnImage(worker: WorkerContext, run: Run): Promise<void> {
  try {
    await readImage(worker, run);
  } catch (error) {
    if (!isEngineError(error, 'no-image')) throw error;
    worker.log.warn({ err: error, backend: run.id }, 'The image of a running container is missing');
  }
}

function resumeWaiting(worker: WorkerContext, run: Run): void {
  run.startUp(
    becomeReadyWhenListening(worker, run).catch((error: unknown) => {
      if (!run.startUpSignal.aborted)
        worker.log.error({ err: error, backend: run.id }, 'Adopted backend did not become ready');
    }),
  );
}

/**
 * Keeps the address of an adopted container, and the limit of its egress. If its service requires a firewall that does not exist, this
 * is only logged: the container may run already.
 */
async function restoreAddress(worker: WorkerContext, run: Run, address: string): Promise<void> {
  // The network of a container that was never started may have been replaced.
  if (!worker.engine.network.addresses.reserve(address)) return;
  run.useAddress(address);
  try {
    await worker.firewall.admit(address, run.backend.egress ?? 'open');
  } catch (error) {
    worker.log.error({ err: error, backend: run.id }, 'Cannot limit the egress of an adopted backend');
  }
}

/**
 * How long the start time was paused in an earlier worker, which pulled the image and waited for the holder of the key: the whole time
 * before `starting`, which includes little else.
 */
function pausedMsIn({ history, createdAt, waitsFor }: Backend, now: Date): number {
  const timeOf = (status: string) => history.find((entry) => entry.status === status)?.time.getTime();
  const since = waitsFor === undefined ? timeOf('loading') : createdAt.getTime();
  if (since === undefined) return 0;
  return Math.max((timeOf('starting') ?? now.getTime()) - since, 0);
}
