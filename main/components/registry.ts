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
import type { ComponentDeps } from '../drivers.ts';

/** Opens the registry from the shared dependencies and the configuration. */
export function startRegistry(deps: ComponentDeps): Registry {
  return openRegistry(registryDeps(deps));
}

function registryDeps(deps: ComponentDeps): RegistryDeps {
  const { config, reserve, ...rest } = deps;
  return {
    ...rest,
    ...(config.store === 'sqlite' && { reserve }),
    log: deps.log.child({ component: 'registry' }),
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
  deps: ComponentDeps,
  urls: PlatformUrls,
  registry: Registry | undefined,
): ImageArchives | undefined {
  const { config } = deps;
  if (!registry && config.blobs === 'files') return undefined;
  const opened = registryDeps(deps);
  return openImageArchives({
    ...opened,
    collector: registry?.collector ?? openCollector({ ...opened, settings: opened.collection }),
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
