import { tagId, tags } from '../content/documents.ts';
import type { RegistryContext, RegistryDeps, RemovalFinisher } from '../context.ts';
import { RegistryError } from '../errors.ts';
import { images } from '../../model/image.ts';
import type { Image } from '../../model/image.ts';
import { Quota } from '../quota/quota.ts';
import { RateLimits } from '../access/rate-limits.ts';
import { PullWatch } from '../http/pull-watch.ts';
import { BusyUploads } from '../content/busy-uploads.ts';
import { archiveLimits } from './limits.ts';
import type { ArchiveLimits } from './limits.ts';
import { ArchivePlaces } from './places.ts';
import { receiveImage } from './receive.ts';
import type { ArchiveUpload } from './receive.ts';
import { asApiError } from './api-errors.ts';
import { writeArchive } from './write-archive.ts';
import type { ImageArchive } from './write-archive.ts';

export type { ArchiveUpload } from './receive.ts';
export type { ImageArchive } from './write-archive.ts';

/** Images in and out as archives, for whoever speaks another protocol than a registry's. Throws `ApiError`s. */
export interface ImageArchives extends Disposable {
  /** Reads the archive in a request's body, stores what the repository lacks of it, and tags the image. */
  receive(upload: ArchiveUpload): Promise<Image>;
  /** An image of a repository as an archive, or `undefined` if there is no such image. */
  write(repository: string, digest: string): Promise<ImageArchive | undefined>;
}

export interface ImageArchivesDeps extends RegistryDeps {
  /** The registry's, where that is in this process. */
  readonly collector: RemovalFinisher;
  /** The registry's, where that is in this process. */
  readonly quota: Quota | undefined;
  /** Host and port of the registry, as in the names of images. */
  readonly registryHost: string;
  /** How large an archive may be, as it is sent and unpacked. */
  readonly maxArchiveBytes: number;
  /** Other limits than those of the platform, for tests. */
  readonly archiveLimits?: Partial<ArchiveLimits>;
}

/** Opens what takes and gives archives. It needs the registry's store and blobs, not the registry. Disposing it cuts what is under way. */
export function openImageArchives(deps: ImageArchivesDeps): ImageArchives {
  const closing = new AbortController();
  const context: RegistryContext = {
    ...deps,
    uploads: new BusyUploads(),
    pulls: new PullWatch(deps.clock),
    rates: new RateLimits(deps),
    // Without a registry, of its own: what it misses of those in other processes, it measures again soon.
    quota: deps.quota ?? new Quota(deps),
    signal: closing.signal,
  };
  const limits = { ...archiveLimits, maxBytes: deps.maxArchiveBytes, ...deps.archiveLimits };
  const receiving = { limits, places: new ArchivePlaces(limits) };
  return {
    receive: async (upload) => await receiveImage(context, receiving, upload),
    write: async (repository, digest) => {
      try {
        const tag = await currentTag(context, repository, digest);
        const name = tag === undefined ? undefined : { full: `${deps.registryHost}/${repository}:${tag}`, tag };
        return await writeArchive(context, { repository, digest, name });
      } catch (error) {
        throw asApiError(error);
      }
    },
    [Symbol.dispose]: () => closing.abort(new RegistryError('unavailable')),
  };
}

/** The tag that an image was last pushed under, of those that still point to it. */
async function currentTag({ store }: RegistryContext, repository: string, digest: string): Promise<string | undefined> {
  const found = await store.find(images, { index: 'byDigest', equals: { repository, digest }, order: 'descending' });
  for (const { tag } of found) {
    if ((await store.get(tags, tagId(repository, tag)))?.digest === digest) return tag;
  }
  return undefined;
}
