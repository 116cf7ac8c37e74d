/** Connect: find who holds the key or spawn a backend, and make a route to it. */
import { spawnJob, clusterQueue } from '../contract/jobs.ts';
import type { ConnectRequest, SpawnConfig } from '../contract/connect.ts';
import { digestPattern } from '../contract/names.ts';
import { upsert } from '../core/store/upsert.ts';
import { backends, endAsLost, isEnding, lastLiveStatus, newBackend, requestStop, touch } from '../model/backend.ts';
import type { Backend } from '../model/backend.ts';
import { newBackendId } from '../model/ids.ts';
import { chooseImage, images } from '../model/image.ts';
import { claimSeenKey, isClaimCertain, isForgettable, keyId, keyState, keys, renewKey } from '../model/key.ts';
import type { Key } from '../model/key.ts';
import { ApiError } from '../model/api-error.ts';
import { newRoute, routes, tokenSource } from '../model/route.ts';
import type { RoutedUser } from '../model/route.ts';
import { environmentOf, serviceId, services } from '../model/service.ts';
import type { Environment, Service } from '../model/service.ts';
import { ClaimWait } from './claim-wait.ts';
import { endBackend } from './stop.ts';
import { LapseWait } from './lapse-wait.ts';
import { notify } from './notify.ts';
import type { Api } from './room.ts';
import { planSpawn } from './spawn-plan.ts';

/** What is connected to. */
export interface ConnectTarget {
  readonly account: string;
  readonly service: string;
  readonly environment?: string;
}

export interface Connection {
  readonly backend: Backend;
  readonly token: string;
  readonly spawned: boolean;
}

/**
 * Connects to the backend that holds the key, or to a new one. The order of writes is claim, backend and route, notification:
 * after a crash between any two, the claim's short lease runs out, or the worker finds the backend in the store.
 *
 * Throws `ApiError` with `ServiceNotFound`, `EnvironmentNotFound`, `ImageNotFound`, `NoImage`, `KeyNotHeld`, `MountsDisabled`,
 * `Unavailable`, and the signal's reason.
 */
export async function connect(
  api: Api,
  target: ConnectTarget,
  request: ConnectRequest,
  signal: AbortSignal,
): Promise<Connection> {
  const service = await api.store.get(services, serviceId(target.account, target.service));
  if (!service) throw new ApiError('ServiceNotFound', `There is no service "${target.account}/${target.service}"`);
  const environment = environmentOf(service, target.environment);
  if (request.key === undefined) return await spawn(api, { service, environment, request });
  const id = keyId(service.account, service.name, request.key);
  const wait = new ClaimWait(api.clock, signal);
  const lapse = new LapseWait(api.clock, signal);
  for (;;) {
    signal.throwIfAborted();
    const { key, holder, state, now } = await lookAtKey(api, id);
    if (key && state === 'claiming') {
      await wait.pause(key, now);
      continue;
    }
    if (key && state === 'lapsed' && !(await lapse.isLost(key))) continue;
    if (state === 'held' && holder) {
      const connection = await join(api, holder, request, now);
      if (connection) return connection;
      continue;
    }
    if (request.spawn === false) {
      throw new ApiError('KeyNotHeld', `No running backend holds key ${JSON.stringify(request.key)}`);
    }
    if (key && state === 'lapsed' && holder && !(await markLost(api, key, holder))) continue;
    const predecessor = await livePredecessor(api, holder);
    const connection = await spawn(api, { service, environment, request, claim: { id, seen: key, predecessor } });
    if (connection) return connection;
  }
}

interface Claim {
  readonly id: string;
  /** The key as it stood when it was found free. */
  readonly seen: Key | undefined;
  readonly predecessor: Backend | undefined;
}

interface Spawn {
  readonly service: Service;
  readonly environment: Environment;
  readonly request: ConnectRequest;
}

/** The time is read first: a backend that is missing when its claim has ended was missing at the end of the claim. */
async function lookAtKey(api: Api, id: string) {
  const now = await api.store.now();
  const key = await api.store.get(keys, id);
  const holder = key && (await api.store.get(backends, key.backend));
  return { key, holder, now, state: keyState(key, holder, { now, liveNode: api.ownNode?.() }) };
}

/**
 * Adds a route to a backend that runs already, and gives its new user time to arrive. Returns `undefined` if it has begun to
 * end: no client has the route that is left then, and it is deleted with its backend.
 */
async function join(api: Api, holder: Backend, request: ConnectRequest, now: Date): Promise<Connection | undefined> {
  const { id } = holder;
  // One that was touched a moment ago was read a moment ago, too: there is nothing to write, nor to read again.
  const isTouched = touch(holder, now) === holder;
  const [backend, token] = await Promise.all([
    isTouched ? holder : api.store.update(backends, id, (current) => touch(current, now)),
    keepRoute(api, { backend: id, user: request.user, auth: request.auth }),
  ]);
  return backend && !isEnding(backend) ? { backend, token, spawned: false } : undefined;
}

/** Writes a route to a running backend, unless an earlier connect wrote the same one, and returns its connection token. */
async function keepRoute(api: Api, routed: RoutedUser): Promise<string> {
  const token = api.tokenFor(tokenSource(routed));
  const route = newRoute(token, routed);
  await upsert(api.store, routes, route.id, (current) => current ?? route);
  return token;
}

/**
 * The holder of a key has not renewed its lease: it counts as gone, and its node will find that out. Unless it has just renewed:
 * the key is read again before the end is written.
 *
 * @returns whether the holder has ended
 */
async function markLost(api: Api, { id, leaseUntil }: Key, holder: Backend): Promise<boolean> {
  const again = await api.store.get(keys, id);
  if (again?.backend !== holder.id || again.leaseUntil.getTime() !== leaseUntil.getTime()) return false;
  const now = await api.store.now();
  const change = (current: Backend) => endAsLost(current, now);
  await endBackend(api, holder.id, { endedBy: 'connect', change });
  return true;
}

/** The backend that must end before the next holder of its key may start: the holder, or whom that one waited for in vain. */
async function livePredecessor(api: Api, holder: Backend | undefined): Promise<Backend | undefined> {
  let predecessor = holder && (await api.store.get(backends, holder.id));
  while (predecessor && !predecessor.live) {
    const { waitsFor } = predecessor;
    // One that got any further had seen the end of the one that it waited for.
    const hasWaitedInVain = waitsFor !== undefined && lastLiveStatus(predecessor) === 'scheduled';
    predecessor = hasWaitedInVain ? await api.store.get(backends, waitsFor) : undefined;
  }
  return predecessor;
}

async function spawn(api: Api, spawn: Spawn): Promise<Connection>;
async function spawn(api: Api, spawn: Spawn & { claim: Claim }): Promise<Connection | undefined>;
async function spawn(api: Api, { service, environment, request, claim }: Spawn & { claim?: Claim }) {
  const config = typeof request.spawn === 'object' ? request.spawn : {};
  const plan = planSpawn(api.rules, config);
  const now = await api.store.now();
  const imageDigest = await imageToSpawn(api, { service, environment, config, now });
  const id = newBackendId();
  const key = claim && (await take(api, claim, id, now));
  if (claim && key?.backend !== id) return undefined;
  const backend = newBackend(
    {
      ...plan,
      id,
      account: service.account,
      service: service.name,
      environment: environment.name,
      cluster: config.cluster ?? environment.cluster,
      imageDigest,
      ...(key && request.key !== undefined && { key: request.key, fencingToken: key.fencingToken }),
      ...(claim?.predecessor && { waitsFor: claim.predecessor.id }),
    },
    now,
  );
  const routed = { backend: id, user: request.user, auth: request.auth };
  const token = api.tokenFor(tokenSource(routed));
  // Both at once takes a third less time. A process that dies here can leave a route without a backend: a few hundred bytes.
  await Promise.all([api.store.insert(routes, newRoute(token, routed)), api.store.insert(backends, backend)]);
  if (key && !(await claimStands(api, key))) {
    await withdraw(api, backend);
    return undefined;
  }
  await notify(api, clusterQueue(backend.cluster), spawnJob, { backend: id });
  api.noteSpawn(service.id, environment.name, now);
  return { backend, token, spawned: true };
}

/** Claims a key, unless it was assigned or renewed since it was seen; then the key comes back as it is. */
async function take(api: Api, { id, seen }: Claim, backend: string, now: Date): Promise<Key> {
  return await upsert(api.store, keys, id, (current) => claimSeenKey(current, seen, { id, backend, now }));
}

/**
 * Whether a claim still stands, now that its backend is written. Late in its time, another request may have found no backend
 * and be about to claim the key anew: the renewal makes one of the two look again.
 */
async function claimStands(api: Api, claim: Key): Promise<boolean> {
  const now = await api.store.now();
  if (isClaimCertain(claim, now)) return true;
  // While this process stood still, a key with a higher token may have come and been deleted.
  if (isForgettable(claim, now)) return false;
  const key = await api.store.update(keys, claim.id, (current) => renewKey(current, claim.fencingToken, now));
  return key?.fencingToken === claim.fencingToken;
}

/** Ends a backend whose key was given to another one before it was written. Without its key no node would start it. */
async function withdraw(api: Api, { id }: Backend): Promise<void> {
  const now = await api.store.now();
  const change = (current: Backend) => (current.live ? requestStop(current, 'hard', 'keyexpired', now) : current);
  await endBackend(api, id, { endedBy: 'connect', change });
}

/** The digest to run: what the request names, else what the environment does. */
async function imageToSpawn(
  api: Api,
  { service, environment, config, now }: Omit<Spawn, 'request'> & { config: SpawnConfig; now: Date },
): Promise<string> {
  const reference = config.tag ?? environment.imageTag;
  const leaseMs = api.rules.imageLeaseSeconds * 1000;
  const image = await chooseImage(api.store, { repository: service.id, reference }, { now, leaseMs });
  if (image) return image.digest;
  const [any] = await api.store.find(images, { index: 'byTime', equals: { repository: service.id }, limit: 1 });
  if (!any && config.tag === undefined) {
    const target = `${api.urls.registryHost}/${service.id}`;
    throw new ApiError('NoImage', `Service "${service.id}" has no image yet, push one to ${target}`);
  }
  const kind = digestPattern.test(reference) ? 'digest' : 'tag';
  throw new ApiError('ImageNotFound', `Service "${service.id}" has no image with the ${kind} "${reference}"`);
}
