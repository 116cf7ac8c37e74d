/**
 * How the worker holds the keys of its backends. Where other processes share the store, it stops them before a lease ends that it
 * could not renew.
 */
import type { TerminationKind } from '../../contract/statuses.ts';
import { withTimeout } from '../../core/async/with-timeout.ts';
import { keyId, keys, leaseMs, renewEveryMs, renewKey, softStopBeforeMs } from '../../model/key.ts';
import { isEnding } from '../../model/backend.ts';
import type { Backend } from '../../model/backend.ts';
import { bootTimeMs } from './boot-time.ts';
import type { WorkerContext } from '../context.ts';
import { LeaseDeadlines } from './lease-deadlines.ts';
import type { ContainerLease } from './container-lease.ts';
import { untilDue } from './until-due.ts';

/** A renewal that failed is tried again soon: ten attempts fit in before the soft stop. */
const renewAgainAfterMs = 2_000;

/** A store that has not answered by then has failed; the next attempt must not wait for it. */
const renewalTimeoutMs = 5_000;

/** How long a container that is found running may go on before its key is first renewed here: its lease may end any moment. */
const adoptedLeaseMs = softStopBeforeMs + renewEveryMs;

/** A run, as far as its key goes. */
export interface KeyHolder {
  readonly id: string;
  readonly backend: Backend;
  readonly container: object | undefined;
  readonly containerLease: ContainerLease | undefined;
  readonly stopKind: TerminationKind | undefined;
  /** Aborts when the run is over. */
  readonly signal: AbortSignal;
}

type Stop = (kind: TerminationKind) => void;

/**
 * Renews the key of a run, if it has one, until the run is over. Resolves when the key is held for the first time. If the key
 * was given to another backend, or its lease comes to an end, calls `stop` and never resolves.
 */
export async function keepKey(worker: WorkerContext, run: KeyHolder, stop: Stop): Promise<void> {
  const { account, service, key, fencingToken } = run.backend;
  if (key === undefined || fencingToken === undefined) return;
  const held = Promise.withResolvers<void>();
  const id = keyId(account, service, key);
  void renewUntilOver(worker, run, { id, fencingToken, stop, onHeld: held.resolve }).catch((error: unknown) => {
    if (!run.signal.aborted) worker.log.error({ err: error, backend: run.id }, 'Key is not renewed any more');
  });
  await held.promise;
}

interface Holding {
  readonly id: string;
  readonly fencingToken: number;
  readonly stop: Stop;
  readonly onHeld: () => void;
}

async function renewUntilOver(worker: WorkerContext, run: KeyHolder, holding: Holding): Promise<void> {
  using deadlines = new LeaseDeadlines(worker, holding.stop);
  if (run.container) deadlines.prepare(adoptedLeaseMs)();
  let wasHeld = false;
  while (!run.signal.aborted) {
    const keep = deadlines.prepare(leaseMs);
    const renewal = await renew(worker, run, holding);
    if (renewal === 'held') {
      keep();
      wasHeld = true;
      holding.onHeld();
    } else if (renewal === 'lost') {
      worker.log.warn({ backend: run.id }, 'Key was given to another backend');
      // One that is ending anyway has until its last lease ends, if we know when: its successor waits for it.
      const mayFinish = wasHeld && (run.stopKind !== undefined || isEnding(run.backend));
      if (!mayFinish) holding.stop('hard');
      await untilOver(run);
      return;
    }
    await untilDue(worker.machineClock, renewal === 'held' ? renewEveryMs : renewAgainAfterMs, run.signal);
  }
}

async function renew(worker: WorkerContext, run: KeyHolder, holding: Holding): Promise<'held' | 'lost' | 'failed'> {
  const { store, clock, log } = worker;
  const askedAtMs = bootTimeMs();
  const limit = { clock, ms: renewalTimeoutMs, signal: run.signal, message: 'The store did not answer in time' };
  try {
    const key = await withTimeout(limit, async () => {
      const now = await store.now();
      return await store.update(keys, holding.id, (current) => renewKey(current, holding.fencingToken, now));
    });
    if (key?.fencingToken !== holding.fencingToken) return 'lost';
    await run.containerLease?.renew(askedAtMs);
    return 'held';
  } catch (error) {
    if (!run.signal.aborted) log.warn({ err: error, backend: run.id }, 'Key cannot be renewed, trying again');
    return 'failed';
  }
}

async function untilOver({ signal }: KeyHolder): Promise<void> {
  if (signal.aborted) return;
  await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }));
}
