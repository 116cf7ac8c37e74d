/** Opens the data folder and the drivers of the four ports. Only this file chooses drivers. */
import { join } from 'node:path';
import type { MessagePort } from 'node:worker_threads';
import { BlobsError } from '../core/blobs/blobs.ts';
import type { Blobs } from '../core/blobs/blobs.ts';
import type { Bus } from '../core/bus/bus.ts';
import { openInProcessBus } from '../core/bus/in-process.ts';
import type { SharedBus } from '../core/bus/in-process.ts';
import type { Clock } from '../core/clock/clock.ts';
import { systemClock } from '../core/clock/system-clock.ts';
import { ConfigError } from '../core/config/settings.ts';
import { DiskReserve } from '../core/files/disk-reserve.ts';
import { isInMemory } from '../core/files/durable.ts';
import type { HashThreads } from '../core/hash/hash-threads.ts';
import type { Log } from '../core/log/log.ts';
import type { Metrics } from '../core/metrics/metrics.ts';
import type { Queue } from '../core/queue/queue.ts';
import type { PlatformSecret } from '../core/secret/platform-secret.ts';
import { openSharedSqliteStore, openSqliteStore } from '../core/store/sqlite/sqlite.ts';
import type { OwnedSqliteStore, SqliteShare } from '../core/store/sqlite/sqlite.ts';
import type { AnyCollection } from '../core/store/query-plan.ts';
import { StoreError } from '../core/store/store.ts';
import type { Store } from '../core/store/store.ts';
import { modelCollections } from '../model/collections.ts';
import type { RegistryGrants } from '../model/registry-grant.ts';
import type { TokenChecks } from '../model/token-checks.ts';
import type { Config } from './config/config.ts';
import { openDataFolder } from './process/data-folder.ts';
import type { DataFolder } from './process/data-folder.ts';
import type { Roles } from './config/roles.ts';

/** The dependencies of every component, in any thread. */
export interface ThreadDeps {
  readonly config: Config;
  /** The absolute path of the data folder. */
  readonly dataFolder: string;
  /** The unique ID of the data folder. */
  readonly dataFolderId: string;
  readonly store: Store;
  readonly bus: Bus;
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: Metrics;
  readonly secret: PlatformSecret;
  /** Derives the secret token of a connection token. */
  readonly secretFor: (connectionToken: string) => string;
  readonly nodeName: string;
}

/** The dependencies of components in the main thread. */
export interface ComponentDeps extends ThreadDeps {
  /** `undefined` in a process without registry and API, which read and write images. */
  readonly images: ImageStorage | undefined;
  /** The reserved space on the disk with the data folder. */
  readonly reserve: DiskReserve;
  readonly tokens: TokenChecks;
  readonly grants: RegistryGrants;
  /** Derives a connection token from a text. */
  readonly tokenFor: (source: string) => string;
  /** Returns what another thread of this process needs to open the same drivers. Call it once for each thread. */
  readonly shareDrivers: () => DriverShare;
}

/** The drivers that only threads of one process can share. Drivers that other processes can open are not included. */
export interface DriverShare {
  readonly store: SqliteShare | undefined;
  /** A port to the bus. It must be transferred to the thread, as the port of the store. */
  readonly bus: MessagePort | undefined;
}

/** Where the bytes of images are stored. */
interface ImageStorage {
  readonly blobs: Blobs;
  readonly hashing: HashThreads;
}

interface DocumentStorage {
  readonly store: Store | OwnedSqliteStore;
  readonly reserve: DiskReserve;
}

/** The drivers that store data. Commands need no others. */
interface Storage extends DocumentStorage {
  readonly images: ImageStorage;
}

interface StorageOptions {
  readonly config: Config;
  readonly log: Log;
  /** The data folder. */
  readonly folder: string;
  /** Whether this process serves pulls, so that a cache of blobs helps. */
  readonly isPulledFrom: boolean;
}

/**
 * Opens the store and the blobs; `opening` closes them. Throws `StoreError` with code `locked` if another process uses the data folder,
 * and `ConfigError` if MongoDB is configured but unavailable.
 */
export async function openStorage(options: StorageOptions, opening: AsyncDisposableStack): Promise<Storage> {
  const { registryCollections } = await import('../registry/index.ts');
  const documents = await openDocuments(options, [...modelCollections, ...registryCollections], opening);
  const { HashThreads } = await import('../core/hash/hash-threads.ts');
  const hashing = opening.use(new HashThreads(systemClock));
  const blobs = opening.use(await openBlobs(options, { reserve: documents.reserve, hashing }));
  return { ...documents, images: { blobs, hashing } };
}

/** Opens the store with these collections. */
async function openDocuments(
  { config, folder, log }: StorageOptions,
  collections: readonly AnyCollection[],
  opening: AsyncDisposableStack,
): Promise<DocumentStorage> {
  const reserve = new DiskReserve({ folder, reserveBytes: config.diskReserveMib * 1024 * 1024, clock: systemClock });
  return { reserve, store: opening.use(await openStore(config, { folder, collections, log })) };
}

interface DriverOptions {
  readonly config: Config;
  readonly log: Log;
  readonly metrics: Metrics;
}

/** Opens the drivers; `opening` closes them, the bus first and the store last. Throws the errors of `openStorage`. */
export async function openDrivers(
  { config, log, roles, metrics }: DriverOptions & { readonly roles: Roles },
  opening: AsyncDisposableStack,
): Promise<ComponentDeps> {
  const folder = await openDataFolder(config.dataFolder, config.secretFile);
  const options = { config, log, folder: folder.path, isPulledFrom: roles.has('registry') };
  const hasImages = roles.has('registry') || roles.has('api');
  const storage = hasImages
    ? await openStorage(options, opening)
    : { ...(await openDocuments(options, modelCollections, opening)), images: undefined };
  const { store } = storage;
  const bus = opening.use(await openBus(config, log));
  const { TokenChecks } = await import('../model/token-checks.ts');
  const { RegistryGrants } = await import('../model/registry-grant.ts');
  return {
    ...depsOf({ config, log, metrics }, folder),
    ...storage,
    bus,
    tokens: opening.use(new TokenChecks({ store, bus, clock: systemClock, log })),
    grants: new RegistryGrants(folder.secret),
    tokenFor: folder.secret.deriver('connection tokens'),
    shareDrivers: () => ({
      store: 'share' in store ? store.share() : undefined,
      bus: 'connect' in bus ? bus.connect() : undefined,
    }),
  };
}

/** Opens the drivers in another thread; `opening` closes them. Throws the errors of `openStorage`. */
export async function openThreadDrivers(
  { config, log, metrics, share }: DriverOptions & { readonly share: DriverShare },
  opening: AsyncDisposableStack,
): Promise<ThreadDeps> {
  const folder = await openDataFolder(config.dataFolder, config.secretFile);
  const store = share.store
    ? await openSharedSqliteStore(share.store, { collections: modelCollections, log })
    : await openStore(config, { folder: folder.path, collections: modelCollections, log });
  opening.use(store);
  const bus = opening.use(await openBus(config, log, share.bus));
  return { ...depsOf({ config, log, metrics }, folder), store, bus };
}

function depsOf({ config, log, metrics }: DriverOptions, folder: DataFolder): Omit<ThreadDeps, 'store' | 'bus'> {
  return {
    config,
    dataFolder: folder.path,
    dataFolderId: folder.id,
    clock: systemClock,
    log,
    metrics,
    secret: folder.secret,
    secretFor: folder.secret.deriver('secret tokens'),
    nodeName: config.node ?? folder.id,
  };
}

// To save memory, only drivers that are configured and that the thread needs are loaded.

interface StoreOptions {
  /** The data folder. */
  readonly folder: string;
  readonly collections: readonly AnyCollection[];
  readonly log: Log;
}

async function openStore(config: Config, options: StoreOptions): Promise<Store | OwnedSqliteStore> {
  const { folder, collections, log } = options;
  if (config.store === 'sqlite') return await openSqliteStore({ folder: join(folder, 'store'), collections, log });
  const { openMongoStore } = await import('../core/store/mongodb/mongodb.ts');
  const location = { url: urlFor(config.mongodbUrl), database: config.mongodbDatabase };
  return await openMongoStore({ ...location, collections, log }).catch(explainUnavailable);
}

/** Throws a `ConfigError` if MongoDB is unavailable, and any other error unchanged. */
function explainUnavailable(error: unknown): never {
  const isKnown = error instanceof StoreError || error instanceof BlobsError;
  if (!isKnown || error.code !== 'unavailable') throw error;
  throw new ConfigError(`${error.message}\nIs MongoDB running, and is BERTH_MONGODB_URL right?`, { cause: error });
}

async function openBlobs(
  { config, folder, log, isPulledFrom }: StorageOptions,
  { reserve, hashing }: Pick<DocumentStorage, 'reserve'> & Pick<ImageStorage, 'hashing'>,
): Promise<Blobs> {
  if (config.blobs === 'files') {
    const { openFileBlobs } = await import('../core/blobs/filesystem/filesystem.ts');
    return await openFileBlobs({ folder: join(folder, 'blobs'), reserve, hashing, log });
  }
  const { openGridFsBlobs } = await import('../core/blobs/gridfs/gridfs.ts');
  const location = { url: urlFor(config.mongodbUrl), database: config.mongodbDatabase };
  const cache = { folder: join(folder, 'cache'), maxBytes: config.blobCacheMib * 1024 * 1024, reserve };
  const isCached = isPulledFrom && cache.maxBytes > 0 && !(await isInMemory(folder));
  return await openGridFsBlobs({ ...location, hashing, log, ...(isCached && { cache }) }).catch(explainUnavailable);
}

/** Opens the queue, for components that add or consume jobs. */
export async function openQueue({ config, log }: ComponentDeps): Promise<Queue> {
  if (config.queue === 'process') {
    const { openInProcessQueue } = await import('../core/queue/in-process.ts');
    return openInProcessQueue({ clock: systemClock, log });
  }
  const { openBullQueue } = await import('../core/queue/bullmq.ts');
  return await openBullQueue({ url: urlFor(config.redisUrl), prefix: config.redisPrefix, log });
}

/** @param port - in a thread other than the main thread: the port to the bus of this process */
async function openBus(config: Config, log: Log, port?: MessagePort): Promise<Bus | SharedBus> {
  if (config.bus === 'process') return openInProcessBus({ log, ...(port && { port }) });
  const { openRedisBus } = await import('../core/bus/redis.ts');
  return await openRedisBus({ url: urlFor(config.redisUrl), prefix: config.redisPrefix, log });
}

/** The URL of a driver. `loadConfig` refuses a driver without a URL, so the error is a defect. */
function urlFor(url: string | undefined): string {
  if (url === undefined) throw new Error('A driver has no URL');
  return url;
}
