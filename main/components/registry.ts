import { openCollector, openImageArchives, openRegistry } from '../../registry/index.ts';
import type {
  CollectionSettings,
  ImageArchives,
  Registry,
  RegistryDeps,
  RegistryLimits,
} from '../../registry/index.ts';
import type { Config } from '../config/config.ts';
import type { PlatformUrls } from '../process/listeners.ts';
import type { Ground } from '../drivers.ts';

/** Opens the registry with what it needs of the ground and the configuration. */
export function startRegistry(ground: Ground): Registry {
  return openRegistry(registryDeps(ground));
}

function registryDeps(ground: Ground): RegistryDeps {
  const { config, reserve, ...rest } = ground;
  return {
    ...rest,
    ...(config.store === 'sqlite' && { reserve }),
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

/** As the configuration has them. */
export function registryLimits(config: Config): RegistryLimits {
  return {
    accountBytes: config.registryAccountBytes,
    blobBytes: config.registryBlobBytes,
    openUploads: config.registryOpenUploads,
    requestsPerSecond: config.registryRequestsPerSecond,
    failedLoginsPerMinute: config.registryFailedLoginsPerMinute,
  };
}

/** As the configuration has them. */
export function collectionSettings(config: Config): CollectionSettings {
  return {
    everyMs: config.collectEverySeconds * 1000,
    leaseMs: config.collectLeaseSeconds * 1000,
    removalWaitMs: config.collectWaitSeconds * 1000,
    keptUntaggedImages: config.keptUntaggedImages,
  };
}
