/** Connects to the backend that holds a key, or to a new backend. */
import type { ConnectRequest, UrlForm } from '../../contract/connect.ts';
import { backends, becomeLost, isEnding, lastLiveStatus, touch } from '../../model/backend.ts';
import type { Backend } from '../../model/backend.ts';
import { keyId, keyState, keys } from '../../model/key.ts';
import type { Key } from '../../model/key.ts';
import { ApiError } from '../../model/api-error.ts';
import { environmentOf, findService, isOfDeleted, noService, serviceId } from '../../model/service.ts';
import type { Service } from '../../model/service.ts';
import type { Api } from '../dependencies.ts';
import { chosenForm } from '../session-url.ts';
import { KeyWait } from './key-wait.ts';
import { addRoute, routedTo } from './routes.ts';
import { spawn } from './spawn.ts';
import type { Connection } from './spawn.ts';
import { endBackend } from '../stop.ts';
import type { OlderSpawn } from './older-plan.ts';

export interface ConnectTarget {
  readonly account: string;
  readonly service: string;
  readonly environment?: string;
  /** Absent for a request to v2. */
  readonly older?: OlderSpawn;
}

/**
 * Connects to the backend that holds the key, or to a new backend. The client's signal is read only if the connect must wait,
 * because creating one costs as much as the reads of a connect. Throws `ApiError` with `ServiceNotFound`, `EnvironmentNotFound`,
 * `ImageNotFound`, `NoImage`, `KeyNotHeld`, `MountsDisabled` or `Unavailable`, and the signal's reason.
 */
export async function connect(
  api: Api,
  target: ConnectTarget,
  request: ConnectRequest,
  client: { readonly signal: AbortSignal },
): Promise<Connection> {
  await api.limits.admitConnect(target.account);
  const wanted = serviceId(target.account, target.service);
  const service = await findService(api.store, wanted);
  if (!service) throw noService(wanted);
  const environment = environmentOf(service, target.environment);
  const { older } = target;
  const form = chosenForm(api, request.url_form, service.settings);
  if (request.key === undefined) return await spawn(api, { service, environment, request, older, form });
  const id = keyId(service.account, service.name, request.key);
  let wait: KeyWait | undefined;
  for (let isFirst = true; ; isFirst = false) {
    if (!isFirst) client.signal.throwIfAborted();
    const { key, holder, state, now } = await readKey(api, service, id);
    if (key && state === 'claiming') {
      wait ??= new KeyWait(api.clock, client.signal);
      await wait.forClaim(key, now);
      continue;
    }
    if (key && state === 'lapsed') {
      wait ??= new KeyWait(api.clock, client.signal);
      if (!(await wait.isLost(key))) continue;
    }
    if (state === 'held' && holder) {
      const connection = await join(api, holder, { request, form, now });
      if (connection) return connection;
      continue;
    }
    if (request.spawn === false) {
      throw new ApiError('KeyNotHeld', `No running backend holds key ${JSON.stringify(request.key)}`);
    }
    if (key && state === 'lapsed' && holder && !(await markLost(api, key, holder))) continue;
    const predecessor = await livePredecessor(api, holder);
    const connection = await spawn(api, {
      service,
      environment,
      request,
      older,
      form,
      claim: { id, seen: key, predecessor },
    });
    if (connection) return connection;
  }
}

/**
 * Reads the time first: a backend that is missing when its claim has ended was missing at the end of the claim. A holder that belongs to
 * a deleted service counts as ending, because it is stopped soon.
 */
async function readKey(api: Api, service: Service, id: string) {
  const now = await api.store.now();
  const key = await api.store.get(keys, id);
  const holder = key && (await api.store.get(backends, key.backend));
  // With a shared store, containers end themselves when their leases expire, whether or not their worker lives.
  const liveNode = api.store.isShared ? undefined : api.ownNode?.();
  const state = keyState(key, holder, { now, liveNode });
  const isEndingSoon = state === 'held' && holder !== undefined && isOfDeleted(service, holder);
  return { key, holder, now, state: isEndingSoon ? 'ending' : state };
}

/**
 * Adds a route to a running backend, and touches the backend so that it is not swept before its user arrives. Returns `undefined` if
 * the backend is ending by then. No client gets the route that was written, and it is deleted with its backend.
 */
async function join(
  api: Api,
  holder: Backend,
  { request, form, now }: { readonly request: ConnectRequest; readonly form: UrlForm; readonly now: Date },
): Promise<Connection | undefined> {
  const { id } = holder;
  // A backend that was touched within the last second needs no write, and so no second read.
  const isTouched = touch(holder, now) === holder;
  const routed = routedTo(holder, request, form);
  const [backend, token] = isTouched
    ? [holder, await addRoute(api, routed, now)]
    : await Promise.all([api.store.update(backends, id, (current) => touch(current, now)), addRoute(api, routed, now)]);
  return backend && !isEnding(backend) ? { backend, address: { token, form }, spawned: false } : undefined;
}

/**
 * Ends the holder of a key that has not renewed its lease, unless the key has been renewed since it was read. The node of the holder
 * stops its container when it finds the end in the store.
 *
 * @returns whether the holder has ended
 */
async function markLost(api: Api, { id, leaseUntil }: Key, holder: Backend): Promise<boolean> {
  const current = await api.store.get(keys, id);
  if (current?.backend !== holder.id || current.leaseUntil.getTime() !== leaseUntil.getTime()) return false;
  const now = await api.store.now();
  await endBackend(api, holder.id, { endedBy: 'connect', change: (backend) => becomeLost(backend, now) });
  return true;
}

/** The backend that must end before the next holder may start: the holder or, if it ended while waiting for another, that other. */
async function livePredecessor(api: Api, holder: Backend | undefined): Promise<Backend | undefined> {
  let predecessor = holder && (await api.store.get(backends, holder.id));
  while (predecessor && !predecessor.live) {
    const { waitsFor } = predecessor;
    // A backend that got beyond `scheduled` has seen the end of the backend that it waited for.
    const endedWhileWaiting = waitsFor !== undefined && lastLiveStatus(predecessor) === 'scheduled';
    predecessor = endedWhileWaiting ? await api.store.get(backends, waitsFor) : undefined;
  }
  return predecessor;
}
