/** Connect: find who holds the key or spawn a backend, and make a route to it. */
import { spawnJob, clusterQueue } from '../contract/jobs.ts';
import { backendChanged, backendTouched } from '../contract/messages.ts';
import type { ConnectRequest, SpawnConfig } from '../contract/connect.ts';
import { digestPattern } from '../contract/names.ts';
import { upsert } from '../core/store/upsert.ts';
import { backends, end, newBackend } from '../model/backend.ts';
import type { Backend } from '../model/backend.ts';
import { newBackendId, newToken } from '../model/ids.ts';
import { chooseImage, images } from '../model/image.ts';
import { claimKey, keyId, keyState, keys } from '../model/key.ts';
import type { Key } from '../model/key.ts';
import { Refusal } from '../model/refusal.ts';
import { newRoute, routes } from '../model/route.ts';
import { environmentOf, serviceId, services } from '../model/service.ts';
import type { Environment, Service } from '../model/service.ts';
import { nudge } from './nudge.ts';
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

/** Between two looks at a key that somebody else is just claiming: their next write is a few milliseconds away. */
const claimingPauseMs = 5;

/**
 * Connects to the backend that holds the key, or to a new one. The order of writes is claim, backend and route, nudge: after
 * a crash between any two, the claim's short lease runs out, or the worker finds the backend in the store.
 *
 * Throws `Refusal` with `ServiceNotFound`, `EnvironmentNotFound`, `ImageNotFound`, `NoImage`, `KeyNotHeld`, `MountsDisabled`.
 */
export async function connect(api: Api, target: ConnectTarget, request: ConnectRequest): Promise<Connection> {
  const service = await api.store.get(services, serviceId(target.account, target.service));
  if (!service) throw new Refusal('ServiceNotFound', `There is no service "${target.account}/${target.service}"`);
  const environment = environmentOf(service, target.environment);
  if (request.key === undefined) return await spawn(api, { service, environment, request });
  for (;;) {
    const id = keyId(service.account, service.name, request.key);
    const { key, holder, state } = await lookAtKey(api, id);
    if (state === 'claiming') {
      await api.clock.sleep(claimingPauseMs);
      continue;
    }
    if (state === 'held' && holder) return await join(api, holder, request);
    if (request.spawn === false) {
      throw new Refusal('KeyNotHeld', `No running backend holds key ${JSON.stringify(request.key)}`);
    }
    if (state === 'lapsed' && holder) await markLost(api, holder);
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

async function lookAtKey(api: Api, id: string) {
  const key = await api.store.get(keys, id);
  const holder = key && (await api.store.get(backends, key.backend));
  return { key, holder, state: keyState(key, holder, await api.store.now()) };
}

/** Adds a route to a backend that runs already, and gives its new user time to arrive. */
async function join(api: Api, backend: Backend, request: ConnectRequest): Promise<Connection> {
  const token = newToken();
  await api.bus.publish(backendTouched, { backend: backend.id });
  await api.store.insert(routes, newRoute({ token, backend: backend.id, ...request }, api.clock.now()));
  return { backend, token, spawned: false };
}

/** The node of a holder has not renewed its lease: the holder counts as gone, and its node will find that out. */
async function markLost(api: Api, holder: Backend): Promise<void> {
  const now = await api.store.now();
  const lost = await api.store.update(backends, holder.id, (current) =>
    end(current, { kind: null, reason: 'lost', exitCode: null }, now),
  );
  if (lost) await api.bus.publish(backendChanged, { backend: lost.id, status: lost.status });
}

/** The backend that must end before the next holder of its key may start: the holder, or whom that one waited for in vain. */
async function livePredecessor(api: Api, holder: Backend | undefined): Promise<Backend | undefined> {
  let predecessor = holder && (await api.store.get(backends, holder.id));
  while (predecessor && !predecessor.live) {
    predecessor = predecessor.waitsFor === undefined ? undefined : await api.store.get(backends, predecessor.waitsFor);
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
  const token = newToken();
  await Promise.all([
    api.store.insert(backends, backend),
    api.store.insert(routes, newRoute({ token, backend: id, ...request }, now)),
  ]);
  await nudge(api, clusterQueue(backend.cluster), spawnJob, { backend: id });
  api.noteSpawn(service.id, environment.name, now);
  return { backend, token, spawned: true };
}

/** Claims a key, unless somebody else did since it was seen; then the key comes back as it is. */
async function take(api: Api, claim: Claim, backend: string, now: Date): Promise<Key> {
  return await upsert(api.store, keys, claim.id, (current) =>
    current?.fencingToken === claim.seen?.fencingToken || !current
      ? claimKey(current, claim.id, backend, now)
      : current,
  );
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
    throw new Refusal('NoImage', `Service "${service.id}" has no image yet, push one to ${target}`);
  }
  const kind = digestPattern.test(reference) ? 'digest' : 'tag';
  throw new Refusal('ImageNotFound', `Service "${service.id}" has no image with the ${kind} "${reference}"`);
}
