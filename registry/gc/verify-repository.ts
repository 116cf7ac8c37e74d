import { images } from '../../model/image.ts';
import { algorithmOf } from '../../core/hash/hash.ts';
import { digestOfBytes } from '../content/digests.ts';
import { blobLinks, contentId, manifestBatchSize, manifests, ofRepository, tags } from '../content/documents.ts';
import type { StoredManifest } from '../content/documents.ts';
import { RegistryError } from '../errors.ts';
import { parseManifest, referencesOf } from '../content/manifest.ts';
import { removeManifest } from '../content/removal.ts';
import type { Problem } from './events.ts';
import type { GcRun } from './gc-run.ts';

type About = Omit<Problem, 'type' | 'repaired'>;

/**
 * Verifies the documents of one repository. Clients push and delete at the same time, so each problem is checked once more before
 * it is reported.
 */
export async function* verifyRepository(
  run: GcRun,
  repository: string,
  seen: { manifests: number; tags: number },
): AsyncGenerator<Problem, void, undefined> {
  const { store, signal, yielder } = run;
  const needed = new Set<string>();
  for await (const stored of store.scan(manifests, { ...ofRepository(repository), batchSize: manifestBatchSize })) {
    signal.throwIfAborted();
    await yielder.yieldIfDue();
    seen.manifests += 1;
    yield* verifyManifest(run, stored, needed);
  }
  yield* verifyLinks(run, repository, needed);
  yield* verifyNames(run, repository, seen);
}

async function* verifyManifest(
  run: GcRun,
  stored: StoredManifest,
  needed: Set<string>,
): AsyncGenerator<Problem, void, undefined> {
  const { store, lease } = run;
  const { repository, digest } = stored;
  if (digestOfBytes(stored.bytes, algorithmOf(digest)) !== digest) {
    const repaired = lease ? await dropDamaged(run, stored) : false;
    const message = repaired ? 'It was removed, push it again' : 'Its bytes differ from the pushed bytes';
    yield problem({ kind: 'manifest-damaged', digest, repository, message }, repaired);
    return;
  }
  const references = readReferences(stored);
  if (references instanceof RegistryError) {
    const message = `This version cannot read it: ${references.message}`;
    yield problem({ kind: 'manifest-unreadable', digest, repository, message }, false);
    return;
  }
  for (const reference of references) {
    needed.add(reference);
    if (await isPresent(run, repository, reference)) continue;
    if (!(await store.get(manifests, stored.id))) return;
    const names = await store.find(tags, { index: 'byDigest', equals: { repository, digest }, limit: 3 });
    const name = names.length > 0 ? names.map(({ tag }) => tag).join(', ') : digest;
    const message = `${repository} (${name}) needs it, push that again or delete it`;
    yield problem({ kind: 'content-missing', digest: reference, repository, message }, false);
  }
}

/** The digests that a manifest refers to, or why this version does not accept it, because its parser has become stricter. */
function readReferences({ bytes, mediaType }: StoredManifest): string[] | RegistryError {
  try {
    const references = referencesOf(parseManifest(bytes, mediaType)).map((reference) => reference.digest);
    return [...new Set(references)];
  } catch (error) {
    if (error instanceof RegistryError) return error;
    throw error;
  }
}

/** Whether the repository has content, as a blob with its bytes or as a manifest. */
async function isPresent({ store, blobs }: GcRun, repository: string, digest: string): Promise<boolean> {
  const id = contentId(repository, digest);
  if ((await store.get(blobLinks, id)) && (await blobs.stat(digest))) return true;
  return (await store.get(manifests, id)) !== undefined;
}

/** Deletes a damaged manifest with its names, unless it is pushed again at this moment. @returns whether it was deleted. */
async function dropDamaged({ store }: GcRun, stored: StoredManifest): Promise<boolean> {
  const now = await store.now();
  return await removeManifest(store, stored, {
    image: ({ uploadTime }) => uploadTime < now,
    tag: ({ pushedAt }) => pushedAt < now,
    manifest: ({ pushedAt }) => pushedAt.getTime() === stored.pushedAt.getTime(),
  });
}

async function* verifyLinks(
  run: GcRun,
  repository: string,
  needed: ReadonlySet<string>,
): AsyncGenerator<Problem, void, undefined> {
  const { store, blobs, before, lease, yielder, signal } = run;
  for await (const { id, digest, sizeBytes, usedAt } of store.scan(blobLinks, ofRepository(repository))) {
    signal.throwIfAborted();
    await yielder.yieldIfDue();
    const found = await blobs.stat(digest);
    const about = { digest, repository };
    if (found && found.sizeBytes !== sizeBytes) {
      const message = `${repository} has recorded ${sizeBytes} bytes, and the blob has ${found.sizeBytes}`;
      const change = async () => await store.update(blobLinks, id, (link) => ({ ...link, sizeBytes: found.sizeBytes }));
      yield problem({ kind: 'link-size', ...about, message }, lease ? Boolean(await change()) : false);
    }
    // A manifest that needs the blob was reported above. A recent link may belong to a push that is in progress or was cut off.
    if (found || needed.has(digest) || usedAt >= before) continue;
    const isSame = (link: { readonly usedAt: Date }) => link.usedAt.getTime() === usedAt.getTime();
    const repaired = lease ? await store.delete(blobLinks, id, isSame) : false;
    yield problem(
      { kind: 'link-without-bytes', ...about, message: `${repository} links to it, but its bytes are missing` },
      repaired,
    );
  }
}

/** Tags and images must point to a manifest. */
async function* verifyNames(
  { store, lease, signal }: GcRun,
  repository: string,
  seen: { tags: number },
): AsyncGenerator<Problem, void, undefined> {
  const isGone = async (digest: string) => !(await store.get(manifests, contentId(repository, digest)));
  for await (const { id, tag, digest } of store.scan(tags, ofRepository(repository))) {
    signal.throwIfAborted();
    seen.tags += 1;
    if (!(await isGone(digest)) || (await store.get(tags, id))?.digest !== digest) continue;
    if (!(await isGone(digest))) continue;
    const repaired = lease ? await store.delete(tags, id, (current) => current.digest === digest) : false;
    const message = `Tag "${tag}" of ${repository} points to a missing manifest, push it again`;
    yield problem({ kind: 'tag-without-manifest', digest, repository, message }, repaired);
  }
  const ofImages = { index: 'byTime', equals: { repository } } as const;
  for await (const { id, tag, digest, uploadTime } of store.scan(images, ofImages)) {
    if (!(await isGone(digest)) || !(await store.get(images, id)) || !(await isGone(digest))) continue;
    const isSame = (image: { readonly uploadTime: Date }) => image.uploadTime.getTime() === uploadTime.getTime();
    const repaired = lease ? await store.delete(images, id, isSame) : false;
    const message = `Image "${tag}" of ${repository} points to a missing manifest`;
    yield problem({ kind: 'image-without-manifest', digest, repository, message }, repaired);
  }
}

function problem(about: About, repaired: boolean): Problem {
  return { type: 'problem', ...about, repaired };
}
