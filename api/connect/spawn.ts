/** Spawns a backend: chooses its image, claims its key, and inserts it for the workers of its cluster. */
import type { ConnectRequest, ResourceLimits, SpawnConfig, UrlForm } from '../../contract/connect.ts';
import { generations } from '../../contract/generations.ts';
import type { GenerationName } from '../../contract/generations.ts';
import { clusterQueue, spawnJob } from '../../contract/jobs.ts';
import { digestPattern } from '../../contract/names.ts';
import { upsert } from '../../core/store/upsert.ts';
import { backends, newBackend, requestStop } from '../../model/backend.ts';
import type { Backend, BackendLimits, BackendPlan } from '../../model/backend.ts';
import { newBackendId } from '../../model/ids.ts';
import { chooseImage, images } from '../../model/image.ts';
import { claimSeenKey, isClaimCertain, isKeyDeletable, keys, renewKey } from '../../model/key.ts';
import type { Key } from '../../model/key.ts';
import { ApiError } from '../../model/api-error.ts';
import type { Environment, Service } from '../../model/service.ts';
import { openSecrets } from '../../model/service-settings.ts';
import type { ServiceSettings } from '../../model/service-settings.ts';
import type { Api, SpawnRules } from '../dependencies.ts';
import { notify } from '../notify.ts';
import { imageName } from '../present.ts';
import type { SessionAddress } from '../../model/ready-url.ts';
import { endBackend } from '../stop.ts';
import { addBaseRoute, baseUrlVariables } from './base-url.ts';
import { olderPlan } from './older-plan.ts';
import type { OlderSpawn } from './older-plan.ts';
import { addFirstRoute, routedTo } from './routes.ts';

export interface Connection {
  readonly backend: Backend;
  readonly address: SessionAddress;
  readonly spawned: boolean;
}

interface Spawn {
  readonly service: Service;
  readonly environment: Environment;
  readonly request: ConnectRequest;
  readonly older: OlderSpawn | undefined;
  readonly form: UrlForm;
}

interface Claim {
  readonly id: string;
  /** The key as it was when it was found free. */
  readonly seen: Key | undefined;
  readonly predecessor: Backend | undefined;
}

/**
 * Spawns a backend with a route. Returns `undefined` if another request claims the key first. The order of writes is: claim, backend
 * and route, notification. After a crash between any two, the claim's short lease expires, or a worker finds the backend in the store.
 */
export async function spawn(api: Api, spawn: Spawn): Promise<Connection>;
export async function spawn(api: Api, spawn: Spawn & { claim: Claim }): Promise<Connection | undefined>;
export async function spawn(
  api: Api,
  { service, environment, request, older, form, claim }: Spawn & { claim?: Claim },
) {
  const config = typeof request.spawn === 'object' ? request.spawn : {};
  const plan = planSpawn(api.rules, config, { settings: service.settings, generation: older?.generation });
  const now = await api.store.now();
  const imageDigest = await imageToSpawn(api, { service, environment, config, now });
  if (!(await isAdmitted(api, service.account, claim))) return undefined;
  const id = newBackendId(now);
  const key = claim && (await claimKey(api, claim, id, now));
  if (claim && key?.backend !== id) return undefined;
  const holds = key && request.key !== undefined && { key: request.key, fencingToken: key.fencingToken };
  const spawned = { id, account: service.account, service: service.name, env: plan.env, ...holds };
  const forOlder = older && olderPlan(api, older, spawned, form);
  const secrets = {
    ...baseUrlVariables(api, spawned),
    ...openSecrets(api.serviceSecrets, service, config.executable?.env),
    ...forOlder?.secrets,
  };
  const backend = newBackend(
    {
      ...plan,
      id,
      account: service.account,
      service: service.name,
      environment: environment.name,
      cluster: config.cluster ?? environment.cluster,
      imageDigest,
      ...forOlder?.plan,
      ...(Object.keys(secrets).length > 0 && { sealedEnv: api.containerEnv.seal(id, secrets) }),
      ...holds,
      ...(claim?.predecessor && { waitsFor: claim.predecessor.id }),
    },
    now,
  );
  // Concurrently, which takes a third less time. A process that dies now can leave a route without a backend: a few hundred bytes.
  const [token] = await Promise.all([
    addFirstRoute(api, routedTo(backend, request, form)),
    addBaseRoute(api, backend, { request, form }),
    api.store.insert(backends, backend),
  ]);
  if (key && !(await isClaimValid(api, key))) {
    await withdraw(api, backend);
    return undefined;
  }
  await notify(api, clusterQueue(backend.cluster), spawnJob, { backend: id });
  api.recordSpawn(service.id, environment.name, now);
  return { backend, address: { token, form }, spawned: true };
}

/**
 * Counts the backend among those of its account. Returns false if another request has claimed the key meanwhile, whose backend may be
 * the last one that the account can run. Throws `TooManyBackends`.
 */
async function isAdmitted(api: Api, account: string, claim: Claim | undefined): Promise<boolean> {
  try {
    await api.limits.admitBackend(account, claim?.id);
    return true;
  } catch (error) {
    if (claim && (await api.store.get(keys, claim.id))?.fencingToken !== claim.seen?.fencingToken) return false;
    throw error;
  }
}

/** Claims a key, unless it was assigned or renewed since it was read. Then it returns the key as it is. */
async function claimKey(api: Api, { id, seen }: Claim, backend: string, now: Date): Promise<Key> {
  return await upsert(api.store, keys, id, (current) => claimSeenKey(current, seen, { id, backend, now }));
}

/**
 * Whether a claim is still valid after its backend was written. Near the end of the claim, another request may have found no backend
 * and be about to claim the key. The renewal makes one of the two read again.
 */
async function isClaimValid(api: Api, claim: Key): Promise<boolean> {
  const now = await api.store.now();
  if (isClaimCertain(claim, now)) return true;
  // If this process was frozen, a key with a higher token may have been created and deleted in the meantime.
  if (isKeyDeletable(claim, now)) return false;
  const key = await api.store.update(keys, claim.id, (current) => renewKey(current, claim.fencingToken, now));
  return key?.fencingToken === claim.fencingToken;
}

/** Ends a backend whose key was assigned to another one before the backend was written. Nodes do not start it without its key. */
async function withdraw(api: Api, { id }: Backend): Promise<void> {
  const now = await api.store.now();
  const change = (current: Backend) => (current.live ? requestStop(current, 'hard', 'keyexpired', now) : current);
  await endBackend(api, id, { endedBy: 'connect', change });
}

/** Returns the digest of the image that the request names, or else of the image of the environment. */
async function imageToSpawn(
  api: Api,
  { service, environment, config, now }: Pick<Spawn, 'service' | 'environment'> & { config: SpawnConfig; now: Date },
): Promise<string> {
  const reference = config.tag ?? environment.imageTag;
  const leaseMs = api.rules.imageLeaseSeconds * 1000;
  const image = await chooseImage(api.store, { repository: service.id, reference }, { now, leaseMs });
  if (image) return image.digest;
  const [any] = await api.store.find(images, { index: 'byTime', equals: { repository: service.id }, limit: 1 });
  if (!any && config.tag === undefined) {
    const target = imageName(api.urls, service);
    throw new ApiError('NoImage', `Service "${service.id}" has no image yet, push one to ${target}`);
  }
  const kind = digestPattern.test(reference) ? 'digest' : 'tag';
  throw new ApiError('ImageNotFound', `Service "${service.id}" has no image with the ${kind} "${reference}"`);
}

/** The default window of `cpu_period_percent`, in microseconds. */
const defaultCpuPeriodMicroseconds = 100_000;

/** Applies the settings of the service, defaults and limits to a spawn config. Throws `BadRequest` if it exceeds a limit, and `MountsDisabled`. */
function planSpawn(
  rules: SpawnRules,
  config: SpawnConfig,
  {
    settings = {},
    generation = 'v2',
  }: { readonly settings?: ServiceSettings | undefined; readonly generation?: GenerationName | undefined },
): Pick<
  BackendPlan,
  | 'env'
  | 'limits'
  | 'mount'
  | 'maxIdleSeconds'
  | 'lifetimeLimitSeconds'
  | 'port'
  | 'readiness'
  | 'securityProfile'
  | 'egress'
> {
  const { env, mount, resource_limits: limits } = config.executable ?? {};
  if (mount !== undefined && !rules.mountsEnabled) {
    throw new ApiError('MountsDisabled', 'Mounts are disabled on this platform: BERTH_MOUNT_FOLDER is "off"');
  }
  // The limit may be lower than when the setting was made.
  const ofService =
    settings.maxIdleSeconds === undefined ? undefined : Math.min(settings.maxIdleSeconds, rules.maxIdleSecondsLimit);
  const maxIdleSeconds = config.max_idle_seconds ?? ofService ?? rules.defaultMaxIdleSeconds;
  const lifetime = config.lifetime_limit_seconds ?? rules.defaultLifetimeSeconds;
  checkLimit(generations[generation].words.maxIdleSeconds, maxIdleSeconds, rules.maxIdleSecondsLimit);
  checkMemory(rules, 'spawn.executable.resource_limits.memory_limit_bytes', limits);
  if (lifetime !== undefined) checkLimit('spawn.lifetime_limit_seconds', lifetime, rules.lifetimeSecondsLimit);
  return {
    ...((env ?? settings.env) && { env: { ...settings.env, ...env } }),
    ...(mount !== undefined && { mount }),
    limits: { ...lowered(rules, settings.limits), ...(limits && planLimits(limits)) },
    maxIdleSeconds,
    ...(lifetime !== undefined && { lifetimeLimitSeconds: lifetime }),
    ...(settings.port !== undefined && { port: settings.port }),
    ...(settings.readiness !== undefined && { readiness: settings.readiness }),
    ...(settings.securityProfile !== undefined && { securityProfile: settings.securityProfile }),
    ...(settings.egress !== undefined && { egress: settings.egress }),
  };
}

/** The limits of a backend, from those of a request. */
export function planLimits(limits: ResourceLimits): BackendLimits {
  const { memory_limit_bytes, cpu_period_percent, cpu_period, cpu_time_limit } = limits;
  return {
    ...(memory_limit_bytes !== undefined && { memoryBytes: memory_limit_bytes }),
    ...(cpu_period_percent !== undefined && {
      cpuPeriodPercent: cpu_period_percent,
      cpuPeriodMicroseconds: cpu_period ?? defaultCpuPeriodMicroseconds,
    }),
    ...(cpu_time_limit !== undefined && { cpuTimeSeconds: cpu_time_limit }),
  };
}

/** Throws `BadRequest` if the memory limit of a request is above the platform's. */
export function checkMemory(
  { memoryBytesLimit }: SpawnRules,
  field: string,
  limits: ResourceLimits | null | undefined,
): void {
  if (limits?.memory_limit_bytes !== undefined) checkLimit(field, limits.memory_limit_bytes, memoryBytesLimit);
}

/** The limits of a service. The platform's may be lower than when they were set. */
function lowered({ memoryBytesLimit }: SpawnRules, limits: BackendLimits = {}): BackendLimits {
  const { memoryBytes } = limits;
  return memoryBytes === undefined ? limits : { ...limits, memoryBytes: Math.min(memoryBytes, memoryBytesLimit) };
}

/** Throws `BadRequest` with the name of the field. */
export function checkLimit(field: string, value: number, limit: number): void {
  if (value > limit) throw new ApiError('BadRequest', `${field}: At most ${limit} on this platform`);
}
