/** The ground that rooms stand on: the data folder, and the drivers of the four ports. */
import { join } from 'node:path';
import type { Blobs } from '../core/blobs/blobs.ts';
import { openFileBlobs } from '../core/blobs/filesystem.ts';
import type { Bus } from '../core/bus/bus.ts';
import { openInProcessBus } from '../core/bus/in-process.ts';
import type { Clock } from '../core/clock/clock.ts';
import { systemClock } from '../core/clock/system-clock.ts';
import type { Log } from '../core/log/log.ts';
import { openMetrics } from '../core/metrics/metrics.ts';
import type { Metrics } from '../core/metrics/metrics.ts';
import { openInProcessQueue } from '../core/queue/in-process.ts';
import type { Queue } from '../core/queue/queue.ts';
import { openSqliteStore } from '../core/store/sqlite.ts';
import type { Store } from '../core/store/store.ts';
import { modelCollections } from '../model/collections.ts';
import { RegistryGrants } from '../model/registry-grant.ts';
import { registryCollections } from '../registry/index.ts';
import type { Config } from './config.ts';
import { openDataFolder } from './data-folder.ts';

/** What every room is handed, and what opens them. */
export interface Ground {
  readonly config: Config;
  /** The absolute path of the data folder. */
  readonly dataFolder: string;
  readonly store: Store;
  readonly blobs: Blobs;
  readonly queue: Queue;
  readonly bus: Bus;
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: Metrics;
  readonly grants: RegistryGrants;
  /** The secret token that belongs to a connection token. */
  readonly secretFor: (connectionToken: string) => string;
  readonly nodeName: string;
}

/** Opens the drivers; `opening` closes them: queue and bus first, the store last. Throws `StoreError` `locked`. */
export async function openGround(config: Config, log: Log, opening: AsyncDisposableStack): Promise<Ground> {
  const folder = await openDataFolder(config.dataFolder);
  const collections = [...modelCollections, ...registryCollections];
  const clock = systemClock;
  return {
    config,
    dataFolder: folder.path,
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
