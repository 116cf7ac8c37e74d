/** Takes an image archive into a repository, from the request to the image. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { ByteSource } from '../../core/blobs/blobs.ts';
import { untilAborted } from '../../core/blobs/until-aborted.ts';
import { imageId, images } from '../../model/image.ts';
import type { Image } from '../../model/image.ts';
import type { RegistryContext } from '../context.ts';
import { paced } from '../http/pace.ts';
import { checkedTag, choose } from './candidates.ts';
import type { Wish } from './candidates.ts';
import { decompress } from './decompress.ts';
import { receiveArchive } from './form.ts';
import { imagesIn } from './images-in-archive.ts';
import type { ArchiveLimits } from './limits.ts';
import type { ArchivePlaces } from './places.ts';
import { asApiError, badArchive } from './api-errors.ts';
import { storeImage } from './store-image.ts';
import { takeEntries } from './take-entries.ts';
import { tarEntries } from './tar-entries.ts';

/** An upload, by someone who may push to the repository. */
export interface ArchiveUpload {
  readonly repository: string;
  /** The account of the one who pushes. */
  readonly by: string;
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  /** From the URL; fields of the form come before it. */
  readonly wish: Wish;
  /** Aborts when the client leaves. */
  readonly signal: AbortSignal;
}

interface Receiving {
  readonly limits: ArchiveLimits;
  readonly places: ArchivePlaces;
}

/**
 * Reads the request's body when there is a place for it, stores what the repository lacks, and tags the image.
 *
 * @throws ApiError `BadRequest` for what is no whole and right archive, `PayloadTooLarge`, `UnsupportedMediaType`,
 * `InsufficientStorage`, `Unavailable`.
 */
export async function receiveImage(
  context: RegistryContext,
  { limits, places }: Receiving,
  upload: ArchiveUpload,
): Promise<Image> {
  try {
    const { repository, signal } = upload;
    using _place = await places.take(upload.by, signal);
    const { taken: contents, fields } = await receiveArchive(upload, async (body) => {
      using sent = paced(body, context.clock);
      const stop = AbortSignal.any([signal, sent.signal]);
      const tar = decompress(oneByOne(untilAborted(sent.bytes, stop)), limits);
      return await takeEntries(context, repository, tarEntries(tar, limits));
    });
    const wish = { tag: checkedTag(fields.tag ?? upload.wish.tag), image: fields.image ?? upload.wish.image };
    const chosen = choose(imagesIn(context, contents, wish), wish);
    const choice = { ...chosen, root: await chosen.root() };
    await storeImage({ context, repository, by: upload.by, contents, limits }, choice);
    const image = await context.store.get(images, imageId(repository, choice.tagNames[0], choice.root.digest));
    if (!image) throw badArchive('holds no image of a container for this platform');
    return image;
  } catch (error) {
    throw asApiError(error);
  }
}

async function* oneByOne(source: ByteSource): AsyncGenerator<Uint8Array, void, undefined> {
  for await (const chunks of source) yield* chunks;
}
