/** Pushing manifests. */
import { manifestPushed } from '../contract/messages.ts';
import { tagPattern } from '../contract/names.ts';
import { upsert } from '../core/store/upsert.ts';
import type { GrantedExchange, RegistryContext } from './context.ts';
import { answer } from './answer.ts';
import { algorithmOf, digestOfBytes } from './digests.ts';
import { blobLinks, contentId, manifests, tagId, tags } from './documents.ts';
import type { StoredManifest } from './documents.ts';
import { RegistryError } from './errors.ts';
import { tell } from './events.ts';
import { maxManifestBytes, parseManifest, referencesOf } from './manifest.ts';
import type { Descriptor, Manifest } from './manifest.ts';
import { noteImage } from './pushed-image.ts';
import { ensureRepository } from './repositories.ts';
import { readBody } from './request-body.ts';
import type { Reference } from './routes.ts';

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
 * steps that are missing. Throws `manifest-blob-unknown`, `size-invalid`, `quota-exceeded`.
 */
export async function acceptManifest(context: RegistryContext, pushed: PushedManifest): Promise<void> {
  const { repository, digest, manifest, tagNames, by } = pushed;
  await checkReferences(context, repository, referencesOf(manifest));
  await context.quota.takeManifest(repository, pushed);
  await ensureRepository(context, repository);
  const stored = await storeManifest(context, pushed);
  for (const tag of tagNames) {
    const pushedAt = await storeTag(context, stored, tag);
    await noteImage(context, { repository, tag, digest, manifest, pushedAt });
  }
  const { mediaType } = manifest;
  tell(context, manifestPushed, { repository, digest, mediaType, tags: [...new Set(tagNames)], by });
}

function checkedTags(list: readonly string[]): string[] {
  if (list.length > maxTags) throw new RegistryError('too-many-tags');
  if (!list.every((tag) => tagPattern.test(tag))) throw new RegistryError('tag-invalid');
  return [...new Set(list)];
}

/** Throws `manifest-blob-unknown` or `size-invalid`. Another repository's content does not count. */
async function checkReferences(
  context: RegistryContext,
  repository: string,
  references: readonly Descriptor[],
): Promise<void> {
  // By size too: of two that name one digest with two sizes, one is wrong.
  const byContent = new Map(references.map((reference) => [`${reference.digest} ${reference.size}`, reference]));
  const distinct = [...byContent.values()];
  for (let at = 0; at < distinct.length; at += lookupBatch) {
    const batch = distinct.slice(at, at + lookupBatch);
    await Promise.all(batch.map((reference) => checkReference(context, repository, reference)));
  }
}

/** A child of an index may be a blob (build caches are made so), and a layer may be a manifest. */
async function checkReference({ store }: RegistryContext, repository: string, reference: Descriptor): Promise<void> {
  const { digest, size } = reference;
  const id = contentId(repository, digest);
  const sizeBytes = (await store.get(blobLinks, id))?.sizeBytes ?? (await store.get(manifests, id))?.bytes.byteLength;
  if (sizeBytes === undefined) throw new RegistryError('manifest-blob-unknown', { detail: digest });
  if (sizeBytes !== size) {
    throw new RegistryError('size-invalid', { detail: `${digest} has ${sizeBytes} bytes, not ${size}` });
  }
}

async function storeManifest({ store }: RegistryContext, pushed: PushedManifest): Promise<StoredManifest> {
  const { repository, digest, bytes, manifest } = pushed;
  const document: StoredManifest = {
    id: contentId(repository, digest),
    repository,
    digest,
    mediaType: manifest.mediaType,
    bytes,
    ...(manifest.subject && { subject: manifest.subject.digest }),
    pushedAt: await store.now(),
  };
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
