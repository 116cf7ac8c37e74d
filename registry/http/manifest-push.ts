/** Pushing manifests. */
import { manifestPushed } from '../../contract/messages.ts';
import { tagPattern } from '../../contract/names.ts';
import { upsert } from '../../core/store/upsert.ts';
import type { GrantedExchange, RegistryContext } from '../context.ts';
import { answer } from './answer.ts';
import { algorithmOf, digestOfBytes } from '../content/digests.ts';
import { manifests, tagId, tags } from '../content/documents.ts';
import type { StoredManifest, StoredTag } from '../content/documents.ts';
import { RegistryError } from '../errors.ts';
import { tell } from '../events.ts';
import { mayHaveRunOut, renewLink, renewManifest } from '../content/leases.ts';
import { maxManifestBytes, parseManifest, referencesOf } from '../content/manifest.ts';
import type { Descriptor, Manifest } from '../content/manifest.ts';
import { noteImage } from '../content/pushed-image.ts';
import { removeManifest } from '../content/removal.ts';
import { storedManifest } from '../content/stored-manifest.ts';
import { ensureRepository } from '../content/repositories.ts';
import { readBody } from './request-body.ts';
import type { Reference } from './request-target.ts';

/** The specification asks for at least 10. */
const maxTags = 64;

/** How many references are looked up at a time. */
const lookupBatch = 32;

/** A manifest whose bytes have this digest, and the tags that shall point to it. */
interface PushedManifest {
  readonly repository: string;
  readonly digest: string;
  readonly bytes: Uint8Array;
  readonly manifest: Manifest;
  readonly tagNames: readonly string[];
  /** Who pushes: the account. */
  readonly by: string;
}

/** `PUT …/manifests/<reference>`. */
export async function putManifest(
  context: RegistryContext,
  { request, response, query, caller }: GrantedExchange,
  { repository, reference }: { readonly repository: string; readonly reference: Reference },
): Promise<void> {
  const limit = { maxBytes: maxManifestBytes, tooLarge: 'manifest-too-large' } as const;
  const bytes = await readBody(request, context.clock, limit);
  const manifest = parseManifest(bytes, request.headers['content-type']);
  const digest = digestOfBytes(bytes, 'digest' in reference ? algorithmOf(reference.digest) : 'sha256');
  if ('digest' in reference && reference.digest !== digest) {
    throw new RegistryError('digest-mismatch', { detail: `The content has ${digest}` });
  }
  const tagParameters = checkedTags(query.getAll('tag'));
  const tagNames = 'tag' in reference ? [reference.tag, ...tagParameters] : tagParameters;
  await acceptManifest(context, { repository, digest, bytes, manifest, tagNames, by: caller.subject });
  answer(response, 201, {
    location: `/v2/${repository}/manifests/${digest}`,
    'docker-content-digest': digest,
    ...(manifest.subject && { 'oci-subject': manifest.subject.digest }),
    ...(tagParameters.length > 0 && { 'oci-tag': tagParameters }),
  });
}

/**
 * Takes a manifest, if all that it refers to is in its repository. What a push leaves behind is written in this order:
 * service, manifest, tag, image. Each step stands by itself, so after a crash in between the same push, repeated, does the
 * steps that are missing. What the manifest refers to is leased before it is stored, so that it is not collected before the
 * collector can see the manifest. Throws `manifest-blob-unknown`, `size-invalid`, `quota-exceeded` and `ReserveError`.
 */
export async function acceptManifest(context: RegistryContext, pushed: PushedManifest): Promise<void> {
  const { repository, digest, bytes, manifest, tagNames, by } = pushed;
  await context.reserve?.require(bytes.byteLength);
  const leasedAt = await context.store.now();
  await leaseReferences(context, repository, manifest);
  await context.quota.takeManifest(repository, pushed);
  await ensureRepository(context, repository);
  const stored = await storeManifest(context, pushed);
  const written: Written = { stored, manifest, tags: [] };
  const goodAt = await assertLeased(context, written, leasedAt);
  for (const tag of tagNames) {
    const pushedAt = await storeTag(context, stored, tag);
    written.tags.push({ pushedAt });
    await noteImage(context, { repository, tag, digest, manifest, pushedAt });
  }
  await assertLeased(context, written, goodAt);
  const { mediaType } = manifest;
  tell(context, manifestPushed, { repository, digest, mediaType, tags: [...new Set(tagNames)], by });
}

function checkedTags(list: readonly string[]): string[] {
  if (list.length > maxTags) throw new RegistryError('too-many-tags');
  if (!list.every((tag) => tagPattern.test(tag))) throw new RegistryError('tag-invalid');
  return [...new Set(list)];
}

/**
 * Leases everything that a manifest refers to, and checks thereby that it is here. Throws `manifest-blob-unknown` or
 * `size-invalid`. Another repository's content does not count. The subject may be absent.
 */
async function leaseReferences(context: RegistryContext, repository: string, manifest: Manifest): Promise<void> {
  const children = new Set(manifest.manifests.map(({ digest }) => digest));
  const references = referencesOf(manifest);
  // By size too: of two that name one digest with two sizes, one is wrong.
  const byContent = new Map(references.map((reference) => [`${reference.digest} ${reference.size}`, reference]));
  const distinct = [...byContent.values()];
  for (let at = 0; at < distinct.length; at += lookupBatch) {
    const batch = distinct.slice(at, at + lookupBatch);
    await Promise.all(
      batch.map(async (reference) => {
        const sizeBytes = await leaseReference(context, repository, {
          ...reference,
          isChild: children.has(reference.digest),
        });
        checkSize(reference, sizeBytes);
      }),
    );
  }
  if (manifest.subject) await renewManifest(context, repository, manifest.subject.digest);
}

/**
 * The size of what a reference is to. A child of an index may be a blob (build caches are made so), and a layer may be a
 * manifest. What is both stays both.
 */
async function leaseReference(
  context: RegistryContext,
  repository: string,
  { digest, isChild }: { readonly digest: string; readonly isChild: boolean },
): Promise<number | undefined> {
  const blob = (await renewLink(context, repository, digest)) && (await context.blobs.stat(digest));
  const manifest = isChild || !blob ? await renewManifest(context, repository, digest) : undefined;
  return manifest?.sizeBytes ?? blob?.sizeBytes;
}

function checkSize({ digest, size }: Descriptor, sizeBytes: number | undefined): void {
  if (sizeBytes === undefined) throw new RegistryError('manifest-blob-unknown', { detail: digest });
  if (sizeBytes !== size) {
    throw new RegistryError('size-invalid', { detail: `${digest} has ${sizeBytes} bytes, not ${size}` });
  }
}

/** What a push has written so far. */
interface Written {
  readonly stored: StoredManifest;
  readonly manifest: Manifest;
  readonly tags: Pick<StoredTag, 'pushedAt'>[];
}

/**
 * Makes sure that nothing was collected before the collector could see what was written. Only a push that took very long, from
 * leasing at `leasedAt` until now, has to look. What it finds missing must be pushed again: then what was written goes, too.
 *
 * @returns the time from which the lease counts by now.
 */
async function assertLeased(context: RegistryContext, written: Written, leasedAt: Date): Promise<Date> {
  if (!(await mayHaveRunOut(context, leasedAt))) return leasedAt;
  const now = await context.store.now();
  const { repository, digest } = written.stored;
  try {
    const isHere = await renewManifest(context, repository, digest);
    if (!isHere) throw new RegistryError('manifest-blob-unknown', { detail: digest });
    await leaseReferences(context, repository, written.manifest);
  } catch (error) {
    await takeBack(context, written);
    throw error;
  }
  return now;
}

/** Deletes what this push has written, but nothing that another push has written since. */
async function takeBack({ store }: RegistryContext, { stored, tags: names }: Written): Promise<void> {
  const ours = new Set(names.map(({ pushedAt }) => pushedAt.getTime()));
  await removeManifest(store, stored, {
    image: ({ uploadTime }) => ours.has(uploadTime.getTime()),
    tag: ({ pushedAt }) => ours.has(pushedAt.getTime()),
    manifest: ({ pushedAt }) => pushedAt.getTime() === stored.pushedAt.getTime(),
  });
}

async function storeManifest({ store }: RegistryContext, pushed: PushedManifest): Promise<StoredManifest> {
  const document = storedManifest(pushed, await store.now());
  return await upsert(store, manifests, document.id, () => document);
}

/**
 * Lets a tag point to a manifest.
 *
 * @returns when, in an order that is the same for the tag and for the images made of it, however many push at a time.
 */
async function storeTag({ store }: RegistryContext, manifest: StoredManifest, tag: string): Promise<Date> {
  const { repository, digest } = manifest;
  const id = tagId(repository, tag);
  const now = await store.now();
  const { pushedAt } = await upsert(store, tags, id, (current) => {
    const earliest = current ? current.pushedAt.getTime() + 1 : 0;
    return { id, repository, tag, digest, pushedAt: new Date(Math.max(now.getTime(), earliest)) };
  });
  // Someone who deletes the manifest at this moment may have missed this tag, which would point to nothing.
  await upsert(store, manifests, manifest.id, (current) => current ?? manifest);
  return pushedAt;
}
