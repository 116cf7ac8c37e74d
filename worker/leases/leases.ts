/**
 * Renews the keys of the worker's backends. If other processes share the store and a lease cannot be renewed, its backend is stopped
 * before the lease ends.
 */
import type { TerminationKind } from '../../contract/statuses.ts';
import { withTimeout } from '../../core/async/with-timeout.ts';
import { keyId, keys, leaseMs, renewEveryMs, renewKey, softStopBeforeMs } from '../../model/key.ts';
import { isEnding } from '../../model/backend.ts';
import type { Backend } from '../../model/backend.ts';
import type { WorkerContext } from '../context.ts';
import { bootTimeMs, passed } from './container-lease.ts';
import type { ContainerLease } from './container-lease.ts';
import { LeaseDeadlines, untilDue } from './lease-deadlines.ts';

/** The pause after a failed renewal: ten attempts fit before the soft stop. */
const retryAfterMs = 2_000;

/** The time limit of a renewal: the next attempt must not wait for a store that does not answer. */
const renewalTimeoutMs = 5_000;

/** How long an adopted container may run before its key is first renewed here: its lease may end at any moment. */
const adoptedLeaseMs = softStopBeforeMs + renewEveryMs;

/** The part of a run that concerns its key. */
export interface KeyHolder {
  readonly id: string;
  readonly backend: Backend;
  readonly container: object | undefined;
  readonly containerLease: ContainerLease | undefined;
  readonly stopKind: TerminationKind | undefined;
  /** Aborts when the run has ended. */
  readonly signal: AbortSignal;
}

type LeaseContext = Pick<WorkerContext, 'store' | 'clock' | 'machineClock' | 'log'>;

type Stop = (kind: TerminationKind) => void;

/**
 * Renews the key of a run, if it has one, until the run ends. Resolves after the first renewal. If the key was assigned to
 * another backend, its lease is about to end, or its container has enforced it, calls `stop`, and may never resolve.
 */
export async function keepKey(worker: LeaseContext, run: KeyHolder, stop: Stop): Promise<void> {
  const { account, service, key, fencingToken } = run.backend;
  if (key === undefined || fencingToken === undefined) return;
  const held = Promise.withResolvers<void>();
  const id = keyId(account, service, key);
  void renewUntilEnd(worker, run, { id, fencingToken, stop, onHeld: held.resolve }).catch((error: unknown) => {
    if (!run.signal.aborted)
      worker.log.error(
        { err: error, backend: run.id },
        'Key renewal failed unexpectedly, the key is no longer renewed',
      );
  });
  await held.promise;
}

interface Holding {
  readonly id: string;
  readonly fencingToken: number;
  readonly stop: Stop;
  readonly onHeld: () => void;
}

async function renewUntilEnd(worker: LeaseContext, run: KeyHolder, holding: Holding): Promise<void> {
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
    } else if (renewal === 'soft' || renewal === 'hard') {
      worker.log.warn({ backend: run.id }, 'Container enforces the lease of its key, which is not renewed any more');
      holding.stop(renewal);
      await untilEnd(run);
      return;
    } else if (renewal === 'lost') {
      worker.log.warn({ backend: run.id }, 'Key was assigned to another backend');
      // A backend that is ending may continue until its last lease ends, if its end is known: its successor waits for it.
      const mayFinish = wasHeld && (run.stopKind !== undefined || isEnding(run.backend));
      if (!mayFinish) holding.stop('hard');
      await untilEnd(run);
      return;
    }
    await untilDue(worker.machineClock, renewal === 'held' ? renewEveryMs : retryAfterMs, run.signal);
  }
}

/** `soft`, `hard`: the container itself is stopping or has ended, because its lease had ended. */
type Renewal = 'held' | 'lost' | 'failed' | TerminationKind;

async function renew(worker: LeaseContext, run: KeyHolder, holding: Holding): Promise<Renewal> {
  const { store, clock, log } = worker;
  const requestedAtMs = bootTimeMs();
  const limit = { clock, ms: renewalTimeoutMs, signal: run.signal, message: 'The store did not answer in time' };
  try {
    const endedBy = await containerEnd(run);
    const key = await withTimeout(limit, async () => {
      // The time is read before the container's deadlines are compared: a freeze between these lines makes no lease longer.
      const now = await store.now();
      return await store.update(keys, holding.id, (current) =>
        endedBy() ? current : renewKey(current, holding.fencingToken, now),
      );
    });
    if (key?.fencingToken !== holding.fencingToken) return 'lost';
    if (!endedBy()) await run.containerLease?.renew(requestedAtMs);
    // Compared again: the init has read the last lease if this process was frozen before the new one was written.
    return endedBy() ?? 'held';
  } catch (error) {
    if (!run.signal.aborted) log.warn({ err: error, backend: run.id }, 'Cannot renew a key, trying again');
    return 'failed';
  }
}

/**
 * Returns a function that returns, at each call, how the container of a run has begun to end itself by its current lease. It does so
 * while this process is frozen and renews no lease. Its key must not be renewed afterwards: a connect would return a session that has
 * ended. The key of a backend that is being stopped is still renewed, so that it can save: the next connect finds that it is ending.
 */
async function containerEnd(run: KeyHolder): Promise<() => TerminationKind | undefined> {
  const deadlines = run.container && (await run.containerLease?.deadlines());
  return () => {
    const isStopping = run.stopKind !== undefined || isEnding(run.backend);
    return deadlines && !isStopping ? passed(deadlines) : undefined;
  };
}

async function untilEnd({ signal }: KeyHolder): Promise<void> {
  if (signal.aborted) return;
  await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }));
}
