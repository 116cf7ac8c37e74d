/** Opening each room with what it needs of the ground and the configuration. */
import { randomBytes } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { openApi } from '../api/index.ts';
import type { ApiRoom } from '../api/index.ts';
import { openProxy } from '../proxy/index.ts';
import type { Proxy } from '../proxy/index.ts';
import { openCollector, openImageArchives, openRegistry } from '../registry/index.ts';
import type { CollectionSettings, ImageArchives, Registry, RegistryDeps, RegistryLimits } from '../registry/index.ts';
import { openEngine, openWorker } from '../worker/index.ts';
import type { WorkerSettings } from '../worker/index.ts';
import type { Config } from './config.ts';
import type { PlatformUrls } from './doors.ts';
import type { Ground } from './ground.ts';
import { openNodeWorker } from './node-worker.ts';
import type { NodeWorker } from './node-worker.ts';
import type { Roles } from './roles.ts';

export function startRegistry(ground: Ground): Registry {
  return openRegistry(registryDeps(ground));
}

function registryDeps(ground: Ground): RegistryDeps {
  const { config } = ground;
  return {
    ...ground,
    log: ground.log.child({ room: 'registry' }),
    defaultCluster: config.cluster,
    publicUrl: config.registryUrl,
    behindLoadBalancer: config.behindLoadBalancer,
    limits: registryLimits(config),
    collection: collectionSettings(config),
  };
}

/**
 * Images as archives, which the API takes and gives: where this process can reach the bytes of images. Those in files belong
 * to the process with the registry.
 */
export function startImageArchives(
  ground: Ground,
  urls: PlatformUrls,
  registry: Registry | undefined,
): ImageArchives | undefined {
  const { config } = ground;
  if (!registry && config.blobs === 'files') return undefined;
  const deps = registryDeps(ground);
  return openImageArchives({
    ...deps,
    collector: registry?.collector ?? openCollector({ ...deps, settings: deps.collection }),
    quota: registry?.quota,
    registryHost: urls.registry,
    maxArchiveBytes: config.maxArchiveBytes,
  });
}

export function registryLimits(config: Config): RegistryLimits {
  return {
    accountBytes: config.registryAccountBytes,
    blobBytes: config.registryBlobBytes,
    openUploads: config.registryOpenUploads,
    requestsPerSecond: config.registryRequestsPerSecond,
    failedLoginsPerMinute: config.registryFailedLoginsPerMinute,
  };
}

export function collectionSettings(config: Config): CollectionSettings {
  return {
    everyMs: config.collectEverySeconds * 1000,
    leaseMs: config.collectLeaseSeconds * 1000,
    removalWaitMs: config.collectWaitSeconds * 1000,
    keptUntaggedImages: config.keptUntaggedImages,
  };
}

export async function startProxy(ground: Ground, roles: Roles): Promise<Proxy> {
  const { config, nodeName } = ground;
  return await openProxy({
    ...ground,
    // Two processes under one name would overwrite each other's heartbeat.
    id: `${nodeName}-${randomBytes(4).toString('hex')}`,
    log: ground.log.child({ room: 'proxy' }),
    startTimeoutMs: (config.startTimeoutSeconds + config.pullTimeoutSeconds) * 1000,
    behindLoadBalancer: config.behindLoadBalancer,
    // Backends of this very process's node are reached by their address, all others through their node's gateway.
    ...(roles.has('worker') && { localNode: nodeName }),
  });
}

/** Starts the worker of this node. */
export async function startWorker(ground: Ground, registryHost: string): Promise<NodeWorker> {
  const { config, nodeName, clock } = ground;
  const log = ground.log.child({ room: 'worker' });
  const host = config.dockerHost;
  const settings = { ...workerSettings(ground, registryHost), ...(await thisMachine()) };
  return await openNodeWorker({
    open: async (parts) => {
      const engine = parts.use(await openEngine({ ...(host !== undefined && { host }), node: nodeName, log }));
      return parts.use(await openWorker({ ...ground, log, engine, settings }));
    },
    clock,
    log,
  });
}

/** Linux names each run of its kernel, and tells containers the same name. */
async function thisMachine(): Promise<{ machine?: string }> {
  const machine = await readFile('/proc/sys/kernel/random/boot_id', 'utf8').catch(() => undefined);
  return machine === undefined ? {} : { machine: machine.trim() };
}

export async function startApi(
  ground: Ground,
  urls: PlatformUrls,
  archives: ImageArchives | undefined,
): Promise<ApiRoom> {
  const { config } = ground;
  return await openApi({
    ...ground,
    log: ground.log.child({ room: 'api' }),
    archives,
    urls: { api: urls.api, proxy: urls.proxy, registryHost: urls.registry },
    rules: {
      defaultMaxIdleSeconds: config.defaultMaxIdleSeconds,
      maxIdleSecondsLimit: config.maxIdleSecondsLimit,
      ...(config.defaultLifetimeSeconds > 0 && { defaultLifetimeSeconds: config.defaultLifetimeSeconds }),
      lifetimeSecondsLimit: config.lifetimeSecondsLimit,
      mountsEnabled: mountFolder(ground) !== undefined,
      defaultCluster: config.cluster,
      schedulingTimeoutSeconds: config.startTimeoutSeconds,
      imageLeaseSeconds: config.collectLeaseSeconds,
      fetchesAhead: config.fetchAhead,
    },
  });
}

function workerSettings(ground: Ground, registryHost: string): WorkerSettings {
  const { config, nodeName } = ground;
  const mounts = mountFolder(ground);
  return {
    node: nodeName,
    cluster: config.cluster,
    registryHost: config.registryPullHost ?? registryHost,
    startTimeoutSeconds: config.startTimeoutSeconds,
    pullTimeoutSeconds: config.pullTimeoutSeconds,
    fetchesAhead: config.fetchAhead,
    ...(config.fetchReserveBytes !== undefined && { fetchReserveBytes: config.fetchReserveBytes }),
    stopGraceSeconds: config.stopGraceSeconds,
    defaultMemoryBytes: config.defaultMemoryBytes,
    pidsLimit: config.pidsLimit,
    capabilities: config.capabilities,
    ...(config.containerRuntime !== undefined && { runtime: config.containerRuntime }),
    ...(mounts !== undefined && { mountFolder: mounts }),
    keptLogs: {
      folder: join(ground.dataFolder, 'logs'),
      maxBytes: config.keptLogBytes,
      seconds: config.keptLogSeconds,
      totalBytes: config.keptLogTotalBytes,
    },
    ...(config.advertisedHost !== undefined && {
      gateway: { host: config.gatewayHost, port: config.gatewayPort, advertisedHost: config.advertisedHost },
    }),
    ...(config.maxBackends > 0 && { maxBackends: config.maxBackends }),
    // Starting is CPU work: more at a time only makes each one slower.
    maxConcurrentStarts: 2 * availableParallelism(),
  };
}

function mountFolder({ config, dataFolder }: Ground): string | undefined {
  return config.mountFolder === 'off' ? undefined : (config.mountFolder ?? join(dataFolder, 'mounts'));
}
