/** Receives and writes images as archives, for the service API. */
import { StalledDownloads } from '../core/http/stalled-downloads.ts';
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
import { Quota } from './quota/quota.ts';

/** Images as archives. Throws `ApiError`s. */
export interface ImageArchives extends Disposable {
  /** Reads the archive in a request body, stores what the repository lacks of it, and tags the image. */
  receive(upload: ArchiveUpload): Promise<Image>;
  /** Writes an image of a repository as an archive. `undefined` if there is no such image. */
  write(repository: string, digest: string): Promise<ImageArchive | undefined>;
}

export interface ImageArchivesDeps extends ContentDeps {
  readonly collector: ContentContext['collector'];
  /** The registry's, if it runs in this process. */
  readonly quota: Quota | undefined;
  /** Host and port of the registry, as in the names of images. */
  readonly registryHost: string;
  /** The maximum size of an archive, both as it is sent and unpacked. */
  readonly maxArchiveBytes: number;
  /** Replaces limits of the platform in tests. */
  readonly archiveLimits?: Partial<ArchiveLimits>;
}

/** Opens image archives on the registry's store and blobs; the registry need not run. Disposing cancels uploads in progress. */
export function openImageArchives(deps: ImageArchivesDeps): ImageArchives {
  const closing = new AbortController();
  const context: ContentContext = {
    ...deps,
    downloads: new StalledDownloads(deps.clock),
    // Without a registry in this process, pushes in other processes show in this quota when it is measured again.
    quota: deps.quota ?? new Quota(deps),
    signal: closing.signal,
  };
  const limits = { ...archiveLimits, maxBytes: deps.maxArchiveBytes, ...deps.archiveLimits };
  const receiving = { limits, permits: new ArchivePermits(limits) };
  return {
    receive: async (upload) => await receiveImage(context, receiving, upload),
    write: async (repository, digest) => {
      try {
        return await writeArchive(context, { repository, digest, registryHost: deps.registryHost });
      } catch (error) {
        throw asApiError(error);
      }
    },
    [Symbol.dispose]: () => closing.abort(new RegistryError('unavailable')),
  };
}
