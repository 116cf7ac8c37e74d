/** How this node goes on with backends that are its own already: after a restart, or when something was missed. */
import { backends, isEnding, rank } from '../../model/backend.ts';
import type { Backend } from '../../model/backend.ts';
import { becomeReadyWhenListening } from '../lifecycle/become-ready.ts';
import { finalize } from '../lifecycle/finalize.ts';
import { newRun } from '../lifecycle/new-run.ts';
import type { WorkerContext } from '../context.ts';
import type { ListedContainer } from '../docker/containers.ts';
import { checkContainer } from '../lifecycle/container-exit.ts';
import { keepKey } from '../leases/leases.ts';
import type { Run } from '../lifecycle/run.ts';
import { beginSpawn } from '../lifecycle/spawn.ts';
import { applyStopRequest, stopBackend } from '../lifecycle/stop.ts';

/** Looks after a backend of this node from now on, if it lives, with the container that was found for it, if any. */
export async function adopt(worker: WorkerContext, id: string, container: ListedContainer | undefined): Promise<void> {
  if (isLookedAfter(worker, id)) return;
  // Read now: while nobody here looks after it, nobody ends it either.
  const backend = await worker.store.get(backends, id);
  if (!backend?.live || backend.node !== worker.settings.node || isLookedAfter(worker, id)) return;
  const now = worker.clock.now();
  const run = newRun(worker, backend, { at: now, pulledMs: pulledMsIn(backend, now) });
  worker.log.info({ backend: run.id, status: backend.status, container: container?.phase }, 'Backend adopted');
  if (!container || container.phase === 'created') {
    adoptUnstarted(worker, run, container);
    return;
  }
  try {
    await adoptStarted(worker, run, container);
  } catch (error) {
    // Half adopted is not looked after: the next pass begins anew.
    worker.runs.delete(run.id);
    run.finish();
    throw error;
  }
}

function isLookedAfter(worker: WorkerContext, id: string): boolean {
  return worker.runs.has(id) || worker.claiming.has(id);
}

function adoptUnstarted(worker: WorkerContext, run: Run, container: ListedContainer | undefined): void {
  if (container) run.containerMade(container.id);
  if (isEnding(run.backend)) applyStopRequest(worker, run, run.backend);
  else if (container || rank(run.backend.status) < rank('starting')) void beginSpawn(worker, run);
  else void finalize(worker, run, { exitCode: null, reason: 'lost' });
}

async function adoptStarted(worker: WorkerContext, run: Run, container: ListedContainer): Promise<void> {
  run.containerStarted(container.id);
  const state = await worker.engine.containers.inspect(container.id);
  run.useAddress(state?.address ?? run.backend.address?.host);
  if (run.address !== undefined) worker.engine.network.keepAddress(run.address);
  if (state?.phase !== 'running') {
    await checkContainer(worker, run);
    return;
  }
  await run.containerLease?.open();
  void keepKey(worker, run, (kind) => stopBackend(worker, run, kind, 'keyexpired'));
  if (isEnding(run.backend)) applyStopRequest(worker, run, run.backend);
  else if (run.backend.readyAt === undefined) resumeWaiting(worker, run);
}

function resumeWaiting(worker: WorkerContext, run: Run): void {
  run.startUp(
    becomeReadyWhenListening(worker, run).catch((error: unknown) => {
      if (!run.startUpSignal.aborted) worker.log.error({ err: error, backend: run.id }, 'Backend cannot become ready');
    }),
  );
}

/** How long an earlier worker spent fetching the image: all of `loading`, which is little else. */
function pulledMsIn(backend: Backend, now: Date): number {
  const timeOf = (status: string) => backend.history.find((entry) => entry.status === status)?.time.getTime();
  const loading = timeOf('loading');
  if (loading === undefined) return 0;
  return Math.max((timeOf('starting') ?? now.getTime()) - loading, 0);
}
