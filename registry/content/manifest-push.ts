/** Stores a pushed manifest with its tags and images. */
import { manifestPushed } from '../../contract/messages.ts';
import { upsert } from '../../core/store/upsert.ts';
import type { ContentContext } from '../context.ts';
import { RegistryError } from '../errors.ts';
import { publishEvent } from '../events.ts';
import { contentId, manifests, tagId, tags } from './documents.ts';
import type { Referrer, StoredManifest, StoredTag } from './documents.ts';
import { mayHaveExpired, renewBlob, renewManifest } from './leases.ts';
import { isContainerImage, partsOf, referencesOf } from './manifest.ts';
import type { Descriptor, Manifest } from './manifest.ts';
import { recordImage } from './pushed-image.ts';
import { removeManifest } from './removal.ts';
import { ensureRepository } from './repositories.ts';

/** How many references are looked up at a time. */
const lookupBatch = 32;

/** A manifest whose bytes have this digest. */
interface PushedManifest {
  readonly repository: string;
  readonly digest: string;
  readonly bytes: Uint8Array;
  readonly manifest: Manifest;
  /** The tags that will point to it. */
  readonly tagNames: readonly string[];
  /** The account that pushes. */
  readonly by: string;
  /** Records the push in the audit. Absent if the caller has recorded it. */
  readonly record?: () => Promise<void>;
}

/** The documents that a push has written so far. */
interface Written {
  readonly stored: StoredManifest;
  readonly manifest: Manifest;
  readonly tags: Pick<StoredTag, 'pushedAt'>[];
}

/**
 * Stores a manifest if its repository has all content that it refers to. Writes in this order: service, manifest, tag, image. Each
 * step is complete by itself: after a crash in between, repeating the push does the missing steps. Leases the content before it
 * stores the manifest, so that the collector does not delete content before it can see the manifest. The push is recorded beside
 * the manifest, to save time: a crash may leave a manifest without a record, but never a tag or an answer without one. Throws
 * `manifest-blob-unknown`, `size-invalid`, `quota-exceeded` and `ReserveError`.
 */
export async function pushManifest(context: ContentContext, pushed: PushedManifest): Promise<void> {
  const { repository, digest, bytes, manifest, tagNames, by } = pushed;
  await context.reserve?.require(bytes.byteLength);
  const leasedAt = await context.store.now();
  await leaseReferences(context, repository, manifest);
  await context.quota.reserveManifest(repository, pushed);
  // The content of a deleted service is deleted before its name is used again.
  if (await ensureRepository(context, repository)) await leaseReferences(context, repository, manifest);
  const stored = await storeAndRecord(context, pushed);
  const written: Written = { stored, manifest, tags: [] };
  const renewedAt = await assertLeased(context, written, leasedAt);
  for (const tag of tagNames) {
    const pushedAt = await storeTag(context, stored, tag);
    written.tags.push({ pushedAt });
    await recordImage(context, { repository, tag, digest, manifest, pushedAt });
  }
  await assertLeased(context, written, renewedAt);
  const { mediaType } = manifest;
  publishEvent(context, manifestPushed, { repository, digest, mediaType, tags: [...new Set(tagNames)], by });
}

/**
 * Leases everything that a manifest refers to, which also checks that it exists. Throws `manifest-blob-unknown` or
 * `size-invalid`. Content of other repositories does not count. The subject may be absent.
 */
async function leaseReferences(context: ContentContext, repository: string, manifest: Manifest): Promise<void> {
  const children = new Set(manifest.manifests.map(({ digest }) => digest));
  const references = referencesOf(manifest);
  // By digest and size: of two references to one digest with different sizes, one is wrong.
  const byContent = new Map(references.map((reference) => [`${reference.digest} ${reference.size}`, reference]));
  const distinct = [...byContent.values()];
  for (let at = 0; at < distinct.length; at += lookupBatch) {
    const batch = distinct.slice(at, at + lookupBatch);
    await Promise.all(
      batch.map(async (reference) => {
        const isChild = children.has(reference.digest);
        checkSize(reference, await leaseReference(context, repository, { digest: reference.digest, isChild }));
      }),
    );
  }
  if (manifest.subject) await renewManifest(context, repository, manifest.subject.digest);
}

/**
 * Returns the size of the content that a reference names. A child of an index may be a blob (as in build caches), and a layer may
 * be a manifest. If it is both, both are leased.
 */
async function leaseReference(
  context: ContentContext,
  repository: string,
  { digest, isChild }: { readonly digest: string; readonly isChild: boolean },
): Promise<number | undefined> {
  const blobBytes = await renewBlob(context, repository, digest);
  const isManifest = isChild || blobBytes === undefined;
  const manifest = isManifest ? await renewManifest(context, repository, digest) : undefined;
  return manifest?.sizeBytes ?? blobBytes;
}

function checkSize({ digest, size }: Descriptor, sizeBytes: number | undefined): void {
  if (sizeBytes === undefined) throw new RegistryError('manifest-blob-unknown', { detail: digest });
  if (sizeBytes !== size) {
    throw new RegistryError('size-invalid', { detail: `${digest} has ${sizeBytes} bytes, not ${size}` });
  }
}

/**
 * Checks that no content was deleted before the collector could see the written documents. Only needed if the push has taken very
 * long since it leased the content at `leasedAt`. If content is missing, deletes the written documents: the client must push again.
 *
 * @returns the time from which the lease counts now.
 */
async function assertLeased(context: ContentContext, written: Written, leasedAt: Date): Promise<Date> {
  if (!(await mayHaveExpired(context, leasedAt))) return leasedAt;
  const now = await context.store.now();
  const { repository, digest } = written.stored;
  try {
    const isStored = await renewManifest(context, repository, digest);
    if (!isStored) throw new RegistryError('manifest-blob-unknown', { detail: digest });
    await leaseReferences(context, repository, written.manifest);
  } catch (error) {
    await revert(context, written);
    throw error;
  }
  return now;
}

/** Deletes the documents of this push, but none that another push has written since. */
async function revert({ store }: ContentContext, { stored, tags: names }: Written): Promise<void> {
  const ours = new Set(names.map(({ pushedAt }) => pushedAt.getTime()));
  await removeManifest(store, stored, {
    image: ({ uploadTime }) => ours.has(uploadTime.getTime()),
    tag: ({ pushedAt }) => ours.has(pushedAt.getTime()),
    manifest: ({ pushedAt }) => pushedAt.getTime() === stored.pushedAt.getTime(),
  });
}

/** Waits for both writes, so that a record of a push that fails can be corrected. */
async function storeAndRecord(context: ContentContext, pushed: PushedManifest): Promise<StoredManifest> {
  const [stored, recorded] = await Promise.allSettled([storeManifest(context, pushed), pushed.record?.()]);
  if (stored.status === 'rejected') throw stored.reason;
  if (recorded.status === 'rejected') throw recorded.reason;
  return stored.value;
}

async function storeManifest({ store }: ContentContext, pushed: PushedManifest): Promise<StoredManifest> {
  const document = manifestDocument(pushed, await store.now());
  return await upsert(store, manifests, document.id, () => document);
}

/** The document of a manifest. Its fields repeat what other code needs, so that only verification parses stored bytes. */
function manifestDocument({ repository, digest, bytes, manifest }: PushedManifest, now: Date): StoredManifest {
  const { subject, mediaType } = manifest;
  const sizeBytes = bytes.byteLength;
  return {
    id: contentId(repository, digest),
    repository,
    digest,
    mediaType,
    bytes,
    sizeBytes,
    kind: isContainerImage(manifest) ? 'image' : manifest.kind === 'index' ? 'index' : 'other',
    references: [...new Set(partsOf(manifest).map((part) => part.digest))],
    ...(subject && { subject: subject.digest, referrer: referrerOf(manifest, { digest, sizeBytes }) }),
    pushedAt: now,
    usedAt: now,
  };
}

/** distribution-spec, "Listing Referrers": an image without an artifact type has the type of its config. */
function referrerOf(manifest: Manifest, { digest, sizeBytes }: { digest: string; sizeBytes: number }): Referrer {
  const { kind, mediaType, config, annotations } = manifest;
  const artifactType = manifest.artifactType || (kind === 'image' ? config?.mediaType : undefined);
  const descriptor = {
    mediaType,
    digest,
    size: sizeBytes,
    ...(artifactType && { artifactType }),
    ...(Object.keys(annotations).length > 0 && { annotations }),
  };
  // No document can hold, and no request can name, a type that is not well-formed.
  return { ...(artifactType && { artifactType: artifactType.toWellFormed() }), descriptor: JSON.stringify(descriptor) };
}

/**
 * Points a tag to a manifest.
 *
 * @returns the time of the push, which orders the tag's documents and the images made of them alike, also for concurrent pushes.
 */
async function storeTag({ store }: ContentContext, manifest: StoredManifest, tag: string): Promise<Date> {
  const { repository, digest } = manifest;
  const id = tagId(repository, tag);
  const now = await store.now();
  const { pushedAt } = await upsert(store, tags, id, (current) => {
    const earliest = current ? current.pushedAt.getTime() + 1 : 0;
    return { id, repository, tag, digest, pushedAt: new Date(Math.max(now.getTime(), earliest)) };
  });
  // A concurrent deletion of the manifest may have missed this tag, which would then point to nothing.
  await upsert(store, manifests, manifest.id, (current) => current ?? manifest);
  return pushedAt;
}
