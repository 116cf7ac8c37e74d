/** The composition root: opens drivers, then rooms, in order; closing goes the other way round. */
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { openApi } from '../api/index.ts';
import { openFileBlobs } from '../core/blobs/filesystem.ts';
import type { Blobs } from '../core/blobs/blobs.ts';
import { openInProcessBus } from '../core/bus/in-process.ts';
import type { Bus } from '../core/bus/bus.ts';
import { systemClock } from '../core/clock/system-clock.ts';
import type { Clock } from '../core/clock/clock.ts';
import { newGatedServer } from '../core/http/gate.ts';
import type { GatedServer } from '../core/http/gate.ts';
import { listen } from '../core/http/listener.ts';
import { operationsHandler } from '../core/http/operations.ts';
import type { Log } from '../core/log/log.ts';
import { openMetrics } from '../core/metrics/metrics.ts';
import type { Metrics } from '../core/metrics/metrics.ts';
import { openInProcessQueue } from '../core/queue/in-process.ts';
import type { Queue } from '../core/queue/queue.ts';
import { openSqliteStore } from '../core/store/sqlite.ts';
import type { Store } from '../core/store/store.ts';
import { modelCollections } from '../model/collections.ts';
import { RegistryGrants } from '../model/registry-grant.ts';
import { openProxy } from '../proxy/index.ts';
import { openRegistry, registryCollections } from '../registry/index.ts';
import { EngineError, openEngine, openWorker } from '../worker/index.ts';
import type { WorkerSettings } from '../worker/index.ts';
import type { Config } from './config.ts';
import { openDataFolder } from './data-folder.ts';
import type { DataFolder } from './data-folder.ts';
import { ensureFirstAccount } from './first-account.ts';
import type { FirstAccount } from './first-account.ts';

/** Where the platform is reached. */
export interface PlatformUrls {
  readonly api: string;
  /** Host and port, as in an image's name. */
  readonly registry: string;
  readonly proxy: string;
  readonly operations: string;
}

/** Whether backends can run here, and if not, why. */
export type WorkerState = { readonly running: true } | { readonly running: false; readonly reason: string };

/** A running platform. Disposing it shuts it down in order; backends run on, and the next start adopts them. */
export interface Platform extends AsyncDisposable {
  readonly urls: PlatformUrls;
  readonly account: FirstAccount;
  readonly worker: WorkerState;
}

/** What every room is handed. */
interface Ground {
  readonly config: Config;
  readonly folder: DataFolder;
  readonly store: Store;
  readonly blobs: Blobs;
  readonly queue: Queue;
  readonly bus: Bus;
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: Metrics;
  readonly grants: RegistryGrants;
  readonly secretFor: (connectionToken: string) => string;
  readonly nodeName: string;
}

/**
 * Opens the whole platform in this process. Throws `StoreError` with code `locked` when another process holds the data folder,
 * and what `listen` fails with when a port is taken.
 */
export async function openPlatform(options: { config: Config; log: Log }): Promise<Platform> {
  await using opening = new AsyncDisposableStack();
  const ground = await openGround(options.config, options.log, opening);
  const account = await ensureFirstAccount(ground.store, ground.config.account, ground.folder.path);
  const doors = await openDoors(ground.config, opening);
  await openRooms(ground, doors, opening);
  const worker = await startWorker(ground, doors.urls.registry, opening);
  await openApiRoom(ground, doors, opening);
  openOperations(ground, doors, worker);
  const owned = opening.move();
  return { urls: doors.urls, account, worker, [Symbol.asyncDispose]: () => owned.disposeAsync() };
}

async function openGround(config: Config, log: Log, opening: AsyncDisposableStack): Promise<Ground> {
  const folder = await openDataFolder(config.dataFolder);
  const collections = [...modelCollections, ...registryCollections];
  const clock = systemClock;
  return {
    config,
    folder,
    store: opening.use(await openSqliteStore({ folder: join(folder.path, 'store'), collections, log })),
    blobs: opening.use(await openFileBlobs({ folder: join(folder.path, 'blobs'), log })),
    bus: opening.use(openInProcessBus({ log })),
    queue: opening.use(openInProcessQueue({ clock, log })),
    clock,
    log,
    metrics: openMetrics(),
    grants: new RegistryGrants(folder.secret),
    secretFor: folder.secret.deriver('secret tokens'),
    nodeName: config.node ?? folder.nodeName,
  };
}

interface Doors {
  readonly urls: PlatformUrls;
  readonly api: GatedServer;
  readonly registry: GatedServer;
  readonly proxy: GatedServer;
  readonly operations: GatedServer;
}

/** Listens on every port, with a gate in front: rooms that open one after the other know each other's addresses. */
async function openDoors(config: Config, opening: AsyncDisposableStack): Promise<Doors> {
  const door = async (host: string, port: number) => {
    const gate = newGatedServer();
    const listener = opening.use(await listen(gate.server, { host, port }));
    return { gate, hostPort: `${host}:${listener.port}` };
  };
  const registry = await door(config.host, config.registryPort);
  const proxy = await door(config.host, config.proxyPort);
  const api = await door(config.host, config.apiPort);
  const operations = await door('127.0.0.1', config.operationsPort);
  const urls = {
    api: config.apiUrl ?? `http://${api.hostPort}`,
    registry: config.registryUrl ? new URL(config.registryUrl).host : registry.hostPort,
    proxy: config.proxyUrl ?? `http://${proxy.hostPort}`,
    operations: `http://${operations.hostPort}`,
  };
  return { urls, api: api.gate, registry: registry.gate, proxy: proxy.gate, operations: operations.gate };
}

async function openRooms(ground: Ground, doors: Doors, opening: AsyncDisposableStack): Promise<void> {
  const { config } = ground;
  const registry = opening.use(
    openRegistry({
      ...ground,
      log: ground.log.child({ room: 'registry' }),
      defaultCluster: config.cluster,
      publicUrl: config.registryUrl,
    }),
  );
  doors.registry.open(registry);
  const proxy = opening.use(
    await openProxy({
      ...ground,
      id: ground.nodeName,
      log: ground.log.child({ room: 'proxy' }),
      startTimeoutMs: (config.startTimeoutSeconds + config.pullTimeoutSeconds) * 1000,
    }),
  );
  doors.proxy.open(proxy);
}

async function startWorker(ground: Ground, registryHost: string, opening: AsyncDisposableStack): Promise<WorkerState> {
  const { config, nodeName } = ground;
  const log = ground.log.child({ room: 'worker' });
  try {
    const host = config.dockerHost;
    const engine = opening.use(await openEngine({ ...(host !== undefined && { host }), node: nodeName, log }));
    opening.use(await openWorker({ ...ground, log, engine, settings: workerSettings(ground, registryHost) }));
    return { running: true };
  } catch (error) {
    if (!(error instanceof EngineError)) throw error;
    log.warn({ err: error }, 'No worker on this node');
    return { running: false, reason: error.message };
  }
}

function workerSettings(ground: Ground, registryHost: string): WorkerSettings {
  const { config, nodeName } = ground;
  const mounts = mountFolder(ground);
  return {
    node: nodeName,
    cluster: config.cluster,
    registryHost,
    startTimeoutSeconds: config.startTimeoutSeconds,
    pullTimeoutSeconds: config.pullTimeoutSeconds,
    stopGraceSeconds: config.stopGraceSeconds,
    defaultMemoryBytes: config.defaultMemoryBytes,
    pidsLimit: config.pidsLimit,
    capabilities: config.capabilities,
    ...(config.containerRuntime !== undefined && { runtime: config.containerRuntime }),
    ...(mounts !== undefined && { mountFolder: mounts }),
    // Starting is CPU work: more at a time only makes each one slower.
    maxConcurrentStarts: 2 * availableParallelism(),
  };
}

function mountFolder({ config, folder }: Ground): string | undefined {
  return config.mountFolder === 'off' ? undefined : (config.mountFolder ?? join(folder.path, 'mounts'));
}

async function openApiRoom(ground: Ground, doors: Doors, opening: AsyncDisposableStack): Promise<void> {
  const { config } = ground;
  const room = opening.use(
    await openApi({
      ...ground,
      log: ground.log.child({ room: 'api' }),
      urls: { api: doors.urls.api, proxy: doors.urls.proxy, registryHost: doors.urls.registry },
      rules: {
        defaultMaxIdleSeconds: config.defaultMaxIdleSeconds,
        maxIdleSecondsLimit: config.maxIdleSecondsLimit,
        ...(config.defaultLifetimeSeconds > 0 && { defaultLifetimeSeconds: config.defaultLifetimeSeconds }),
        lifetimeSecondsLimit: config.lifetimeSecondsLimit,
        mountsEnabled: mountFolder(ground) !== undefined,
        defaultCluster: config.cluster,
        schedulingTimeoutSeconds: config.startTimeoutSeconds,
      },
    }),
  );
  doors.api.open(room);
}

function openOperations(ground: Ground, doors: Doors, worker: WorkerState): void {
  const checks = {
    store: () => ground.store.ping(),
    blobs: () => ground.blobs.ping(),
    queue: () => ground.queue.ping(),
    bus: () => ground.bus.ping(),
    worker: async () => {
      if (!worker.running) throw new Error(worker.reason);
    },
  };
  doors.operations.open({ handle: operationsHandler(ground.metrics, checks) });
}
