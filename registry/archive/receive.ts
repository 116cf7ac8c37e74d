/** Receives an image archive into a repository, from the request to the image. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { Semaphore } from '../../core/async/semaphore.ts';
import type { ByteSource } from '../../core/blobs/blobs.ts';
import { untilAborted } from '../../core/async/abortable.ts';
import { withMinimumRate } from '../../core/http/minimum-rate.ts';
import { imageId, images } from '../../model/image.ts';
import type { Image } from '../../model/image.ts';
import type { ContentContext } from '../context.ts';
import { imagesIn } from './archive-images.ts';
import { decompress } from './decompress.ts';
import { badArchive, asApiError } from './api-errors.ts';
import { checkedTag, selectImage } from './image-selector.ts';
import type { ImageSelector } from './image-selector.ts';
import type { ArchiveLimits } from './limits.ts';
import { storeEntries } from './store-entries.ts';
import { storeImage } from './store-image.ts';
import { tarEntries } from './tar-entries.ts';
import { receiveForm } from './upload-form.ts';

/** An upload by a client that may push to the repository. */
export interface ArchiveUpload {
  readonly repository: string;
  /** The account that pushes. */
  readonly by: string;
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  /** From the URL; fields of the form override it. */
  readonly selector: ImageSelector;
  /** Aborts when the client disconnects. */
  readonly signal: AbortSignal;
}

interface Receiving {
  readonly limits: ArchiveLimits;
  readonly permits: ArchivePermits;
}

type PermitLimits = Pick<ArchiveLimits, 'maxAtATime' | 'maxOfAccount'>;

/** Limits how many archives are read at a time, because each takes some megabytes. The bodies of the others wait unread. */
export class ArchivePermits {
  readonly #limits: PermitLimits;
  readonly #all: Semaphore;
  readonly #accounts = new Map<string, { readonly permits: Semaphore; users: number }>();

  constructor(limits: PermitLimits) {
    this.#limits = limits;
    this.#all = new Semaphore(limits.maxAtATime);
  }

  /** Waits for a permit, which is released when it is disposed. Rejects with the signal's reason if that aborts first. */
  async acquire(accountId: string, signal: AbortSignal): Promise<Disposable> {
    using owned = new DisposableStack();
    const account = this.#accounts.get(accountId) ?? { permits: new Semaphore(this.#limits.maxOfAccount), users: 0 };
    this.#accounts.set(accountId, account);
    account.users += 1;
    owned.defer(() => {
      account.users -= 1;
      if (account.users === 0) this.#accounts.delete(accountId);
    });
    owned.use(await account.permits.acquire(signal));
    owned.use(await this.#all.acquire(signal));
    return owned.move();
  }
}

/**
 * Reads the request body when a permit is free, stores the content that the repository lacks, and tags the image.
 *
 * @throws ApiError `BadRequest` for an invalid archive, `PayloadTooLarge`, `UnsupportedMediaType`, `InsufficientStorage`,
 * `Unavailable`.
 */
export async function receiveImage(
  context: ContentContext,
  { limits, permits }: Receiving,
  upload: ArchiveUpload,
): Promise<Image> {
  try {
    const { repository, signal } = upload;
    using _permit = await permits.acquire(upload.by, signal);
    const { result: contents, fields } = await receiveForm({ ...upload, clock: context.clock }, async (body) => {
      using sent = withMinimumRate(body, context.clock);
      const stop = AbortSignal.any([signal, sent.signal]);
      const tar = decompress(singleChunks(untilAborted(sent.bytes, stop)), limits);
      return await storeEntries(context, repository, tarEntries(tar, limits));
    });
    const selector = {
      tag: checkedTag(fields.tag ?? upload.selector.tag),
      image: fields.image ?? upload.selector.image,
    };
    const { root, tagNames } = selectImage(imagesIn(context, contents, selector), selector);
    const selected = { root: await root(), tagNames };
    await storeImage({ context, repository, by: upload.by, contents, limits }, selected);
    const image = await context.store.get(images, imageId(repository, tagNames[0], selected.root.digest));
    if (!image) throw badArchive('holds no image of a container for this platform');
    return image;
  } catch (error) {
    throw asApiError(error);
  }
}

async function* singleChunks(source: ByteSource): AsyncGenerator<Uint8Array, void, undefined> {
  for await (const chunks of source) yield* chunks;
}
