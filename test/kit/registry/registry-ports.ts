/** The store and blobs of a test registry: real drivers, in a temporary folder or in their own database. */
import { join } from 'node:path';
import type { Blobs } from '../../../core/blobs/blobs.ts';
import { openFileBlobs } from '../../../core/blobs/filesystem/filesystem.ts';
import { openGridFsBlobs } from '../../../core/blobs/gridfs/gridfs.ts';
import type { Clock } from '../../../core/clock/clock.ts';
import type { HashThreads } from '../../../core/hash/hash-threads.ts';
import type { Log } from '../../../core/log/log.ts';
import { openMongoStore } from '../../../core/store/mongodb/mongodb.ts';
import type { Store } from '../../../core/store/store.ts';
import { modelCollections } from '../../../model/collections.ts';
import { registryCollections } from '../../../registry/index.ts';
import type { TestDrivers } from '../servers/drivers.ts';
import { temporaryFolder } from '../machine/temporary-folder.ts';
import { newDatabaseAt } from '../servers/mongodb.ts';
import { openTestStore } from '../ports/test-store.ts';

export interface RegistryPorts {
  readonly store: Store;
  readonly blobs: Blobs;
  /** The folder with the files of the embedded drivers. */
  readonly folder?: string;
}

const collections = [...registryCollections, ...modelCollections];

interface Where {
  /** Default: `embedded`. On the shared drivers there are two registries. */
  readonly drivers?: TestDrivers;
  /** Opens one registry on the caller's database. */
  readonly mongo?: { readonly url: string; readonly database: string } | undefined;
}

interface Common {
  readonly log: Log;
  readonly clock: Clock;
  readonly hashing: HashThreads;
}

/** Opens the ports of one registry, or of two on the shared drivers, like two processes. `resources` closes them. */
export async function openRegistryPorts(
  { drivers = 'embedded', mongo }: Where,
  common: Common,
  resources: AsyncDisposableStack,
): Promise<readonly [RegistryPorts, ...RegistryPorts[]]> {
  const { log, clock, hashing } = common;
  const openOn = async (place: { url: string; database: string }): Promise<RegistryPorts> => ({
    store: resources.use(await openMongoStore({ ...place, collections, log })),
    blobs: resources.use(await openGridFsBlobs({ ...place, log, clock, hashing })),
  });
  if (mongo) return [await openOn(mongo)];
  if (drivers !== 'embedded') {
    const { url, database } = resources.use(newDatabaseAt(drivers.mongodbUrl));
    return [await openOn({ url, database }), await openOn({ url, database })];
  }
  const { path: folder } = resources.use(await temporaryFolder());
  const store = resources.use(await openTestStore());
  const blobs = resources.use(await openFileBlobs({ folder: join(folder, 'blobs'), log, clock, hashing }));
  return [{ store, blobs, folder }];
}
