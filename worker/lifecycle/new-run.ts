import type { Backend } from '../../model/backend.ts';
import type { WorkerContext } from '../context.ts';
import { Run } from './run.ts';
import type { RunParts } from './run.ts';
import { Statuses } from './statuses.ts';

/** Begins to look after a backend of this node. */
export function newRun(worker: WorkerContext, backend: Backend, adopted?: RunParts['adopted']): Run {
  const { closing, containerLeases } = worker;
  const run = new Run(backend, {
    statuses: new Statuses(worker, backend.id, closing),
    containerLease: backend.key === undefined ? undefined : containerLeases?.of(backend.id),
    closing,
    ...(adopted && { adopted }),
  });
  worker.runs.set(run.id, run);
  return run;
}
