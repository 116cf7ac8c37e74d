/** Receives and writes images as archives, for the service API. */
import { OpenOperations } from '../core/async/open-operations.ts';
import { StalledDownloads } from '../core/http/stalled-downloads.ts';
import type { Metrics } from '../core/metrics/metrics.ts';
import type { Image } from '../model/image.ts';
import { asApiError } from './archive/api-errors.ts';
import { archiveLimits } from './archive/limits.ts';
import type { ArchiveLimits } from './archive/limits.ts';
import { ArchivePermits, receiveImage } from './archive/receive.ts';
import type { ArchiveUpload } from './archive/receive.ts';
import { writeArchive } from './archive/write-archive.ts';
import type { ImageArchive } from './archive/write-archive.ts';
import type { ContentContext, ContentDeps } from './context.ts';
import { RegistryError } from './errors.ts';
import { GarbageCollector } from './gc/garbage-collector.ts';
import { Quota } from './quota/quota.ts';
import type { Registry } from './registry.ts';

/** Images as archives. Throws `ApiError`s. */
export interface ImageArchives extends AsyncDisposable {
  /** Reads the archive in a request body, stores the content that the repository lacks, and tags the image. */
  receive(upload: ArchiveUpload): Promise<Image>;
  /** Writes an image of a repository as an archive. `undefined` if there is no such image. */
  write(repository: string, digest: string): Promise<ImageArchive | undefined>;
}

export interface ImageArchivesDeps extends ContentDeps {
  readonly metrics: Metrics;
  /** The registry, if it runs in this process. */
  readonly registry: Pick<Registry, 'collector' | 'quota'> | undefined;
  /** Host and port of the registry, as in the names of images. */
  readonly registryHost: string;
  /** The maximum size of an archive, both as it is sent and unpacked. */
  readonly maxArchiveBytes: number;
  /** Replaces limits of the platform in tests. */
  readonly archiveLimits?: Partial<ArchiveLimits>;
}

/** Opens image archives on the registry's store and blobs. Disposing cancels uploads in progress and waits for them. */
export function openImageArchives(deps: ImageArchivesDeps): ImageArchives {
  const closing = new AbortController();
  const uploads = new OpenOperations();
  const own = new AsyncDisposableStack();
  const context: ContentContext = {
    ...deps,
    downloads: new StalledDownloads(deps.clock),
    collector: deps.registry?.collector ?? own.use(new GarbageCollector(deps)),
    // Without a registry in this process, pushes in other processes show in this quota when it is measured again.
    quota: deps.registry?.quota ?? new Quota(deps),
    signal: closing.signal,
  };
  const limits = { ...archiveLimits, maxBytes: deps.maxArchiveBytes, ...deps.archiveLimits };
  const receiving = { limits, permits: new ArchivePermits(limits) };
  return {
    receive: async (upload) => await uploads.run(async () => await receiveImage(context, receiving, upload)),
    write: async (repository, digest) => {
      try {
        const { maxManifests } = limits;
        return await writeArchive(context, { repository, digest, registryHost: deps.registryHost, maxManifests });
      } catch (error) {
        throw asApiError(error);
      }
    },
    [Symbol.asyncDispose]: async () => {
      closing.abort(new RegistryError('unavailable'));
      await uploads.settled();
      await own.disposeAsync();
    },
  };
}
