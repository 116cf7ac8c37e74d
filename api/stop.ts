/** Stops backends on request, and ends those that have no worker. */
import { nodeQueue, stopJob } from '../contract/jobs.ts';
import type { TerminationKind } from '../contract/statuses.ts';
import type { Store } from '../core/store/store.ts';
import { backends, noBackend, terminationFields, rank, requestStop } from '../model/backend.ts';
import type { Backend } from '../model/backend.ts';
import { changeBackend } from '../model/change-backend.ts';
import type { BackendChange } from '../model/change-backend.ts';
import type { Service } from '../model/service.ts';
import { notify } from './notify.ts';
import type { Api, ApiDependencies } from './dependencies.ts';

/** How long an answer waits for the node to send the stop signal. The request is in the store either way. */
const signalWaitMs = 2_000;

/**
 * Requests that a backend stops, and waits a moment until its node has begun to stop it. Throws `BackendNotFound`,
 * `BackendNotRunning`.
 */
export async function stopBackend(api: Api, id: string, kind: TerminationKind, signal: AbortSignal): Promise<void> {
  const now = await api.store.now();
  const change = (current: Backend) => requestStop(current, kind, 'external', now);
  const backend = await endBackend(api, id, { endedBy: 'request', change });
  if (!backend) throw noBackend(id);
  if (!backend.live || backend.node === undefined) return;
  await notify(api, nodeQueue(backend.node), stopJob, { backend: id, priority: 'high' });
  const begun = rank(kind === 'soft' ? 'terminating' : 'hard-terminating');
  const timeout = new AbortController();
  using _timer = api.clock.after(signalWaitMs, () => timeout.abort());
  for await (const { status } of api.watch.follow(id, AbortSignal.any([signal, timeout.signal]))) {
    if (rank(status) >= begun) return;
  }
}

/**
 * Requests that a backend stops, without waiting for its node. Returns whether this request is the first one: a backend that is
 * stopping or has ended is left as it is, unless a hard stop follows a soft one.
 */
export async function requestBackendStop(
  deps: Pick<ApiDependencies, 'store' | 'bus' | 'queue' | 'log'>,
  id: string,
  kind: TerminationKind,
): Promise<boolean> {
  const now = await deps.store.now();
  let isFirst = false;
  const backend = await endBackend(deps, id, {
    endedBy: 'request',
    change: (current) => {
      const next = current.live ? requestStop(current, kind, 'external', now) : current;
      isFirst = next !== current;
      return next;
    },
  });
  if (isFirst && backend?.live && backend.node !== undefined) {
    await notify(deps, nodeQueue(backend.node), stopJob, { backend: id });
  }
  return isFirst;
}

/** The backends of a service that have not ended and were created before a time. */
export async function* runningBackends(
  store: Store,
  { account, name }: Service,
  before: Date,
): AsyncGenerator<Backend, void, undefined> {
  const live = { index: 'byAccount', equals: { account, live: true }, range: { before } } as const;
  for await (const backend of store.scan(backends, live)) if (backend.service === name) yield backend;
}

interface EndingChange {
  /** The part of the API that writes it, for the log. */
  readonly endedBy: 'orphan-reaper' | 'connect' | 'request';
  readonly change: BackendChange;
}

/**
 * Writes the end of a backend, or a stop request for its node. Logs an end.
 *
 * @returns the backend after the change, or `undefined` if no backend has this ID
 */
export async function endBackend(
  deps: Pick<ApiDependencies, 'store' | 'bus' | 'log'>,
  id: string,
  { endedBy, change }: EndingChange,
): Promise<Backend | undefined> {
  const { backend, isChanged } = await changeBackend(deps, id, change);
  if (backend && isChanged && !backend.live) {
    deps.log.info({ backend: id, node: backend.node, endedBy, ...terminationFields(backend) }, 'Backend ended');
  }
  return backend;
}
