import { advance, becomeReady } from '../../model/backend.ts';
import type { WorkerContext } from '../context.ts';
import { untilListening } from './readiness.ts';
import type { Run } from './run.ts';

/** The container of a run was started: waits until it listens, and writes that it is ready. */
export async function becomeReadyWhenListening(worker: WorkerContext, run: Run): Promise<void> {
  const { clock } = worker;
  if (run.address === undefined) throw new Error('A container without an address cannot become ready');
  const address = { host: run.address, port: run.backend.port };
  const startedAt = clock.now();
  void run.write((backend) => advance(advance(backend, 'starting', startedAt), 'waiting', startedAt));
  await untilListening(address, clock, run.startUpSignal);
  const readyAt = clock.now();
  let isChanged = false;
  const ready = await run.write((backend) => {
    const next = becomeReady(backend, address, readyAt);
    isChanged = next !== backend;
    return next;
  });
  if (!ready?.readyAt || !isChanged) return;
  const ms = ready.readyAt.getTime() - ready.createdAt.getTime();
  worker.metrics.spawned('ready', ms / 1000);
  worker.log.info({ backend: run.id, ms }, 'Backend is ready');
}
