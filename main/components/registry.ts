import { openImageArchives, openRegistry } from '../../registry/index.ts';
import type { GcSettings, ImageArchives, Registry, RegistryDeps, RegistryLimits } from '../../registry/index.ts';
import type { Config } from '../config/config.ts';
import type { PlatformUrls } from '../process/listeners.ts';
import type { ComponentDeps } from '../drivers.ts';

/** Opens the registry from the shared dependencies and the configuration. */
export function startRegistry(deps: ComponentDeps): Registry {
  return openRegistry(registryDeps(deps));
}

function registryDeps(deps: ComponentDeps): RegistryDeps {
  const { config, reserve, images, ...rest } = deps;
  if (!images) throw new Error('This process has opened no blobs');
  return {
    ...rest,
    ...images,
    ...(config.store === 'sqlite' && { reserve }),
    log: deps.log.child({ component: 'registry' }),
    defaultCluster: config.cluster,
    publicUrl: config.registryUrl,
    behindLoadBalancer: config.behindLoadBalancer,
    limits: registryLimits(config),
    gc: gcSettings(config),
  };
}

/**
 * Opens the image archives, which the API imports and exports, if this process can read the bytes of images. Only the process with
 * the registry can read blobs that are files.
 */
export function startImageArchives(
  deps: ComponentDeps,
  urls: PlatformUrls,
  registry: Registry | undefined,
): ImageArchives | undefined {
  const { config } = deps;
  if (!registry && config.blobs === 'files') return undefined;
  return openImageArchives({
    ...registryDeps(deps),
    registry,
    registryHost: urls.registry,
    maxArchiveBytes: config.maxArchiveBytes,
  });
}

/** The limits of the registry, from the configuration. */
export function registryLimits(config: Config): RegistryLimits {
  return {
    accountBytes: config.registryAccountBytes,
    blobBytes: config.registryBlobBytes,
    openUploads: config.registryOpenUploads,
    requestsPerSecond: config.registryRequestsPerSecond,
    failedLoginsPerMinute: config.registryFailedLoginsPerMinute,
  };
}

/** The settings of garbage collection, from the configuration. */
export function gcSettings(config: Config): GcSettings {
  return {
    everyMs: config.collectEverySeconds * 1000,
    leaseMs: config.collectLeaseSeconds * 1000,
    removalWaitMs: config.collectWaitSeconds * 1000,
    keptUntaggedImages: config.keptUntaggedImages,
  };
}
