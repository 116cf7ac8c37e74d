/** Deleting manifests and tags. What refers goes before what it refers to; a deletion that was cut short can be repeated. */
import { manifestDeleted, tagDeleted } from '../../contract/messages.ts';
import type { Store } from '../../core/store/store.ts';
import { images } from '../../model/image.ts';
import type { GrantedExchange, RegistryContext } from '../context.ts';
import { answer } from '../answer.ts';
import { noteDeletion } from '../deletions.ts';
import { contentId, manifests, tagId, tags } from '../documents.ts';
import { RegistryError } from '../errors.ts';
import { tell } from '../events.ts';
import { requireRepository } from '../repositories.ts';
import type { Reference } from '../routes.ts';

/** By tag: the tag only. By digest: the manifest and every tag that points to it. */
export async function deleteManifest(
  context: RegistryContext,
  { response, caller }: GrantedExchange,
  { repository, reference }: { readonly repository: string; readonly reference: Reference },
): Promise<void> {
  const { store } = context;
  await requireRepository(store, repository);
  const deleted =
    'tag' in reference
      ? await deleteTag(store, repository, reference.tag)
      : await deleteByDigest(store, repository, reference.digest);
  if (!deleted) throw new RegistryError('manifest-unknown');
  const by = caller.subject;
  if ('tag' in reference) tell(context, tagDeleted, { repository, tag: reference.tag, by });
  else tell(context, manifestDeleted, { repository, digest: reference.digest, by });
  answer(response, 202, {});
}

/** The images go first: an image without its tag could be spawned by a tag that is gone. */
async function deleteTag(store: Store, repository: string, tag: string): Promise<boolean> {
  for (const { id } of await store.find(images, { index: 'byTag', equals: { repository, tag } })) {
    await store.delete(images, id);
  }
  return await store.delete(tags, tagId(repository, tag));
}

async function deleteByDigest(store: Store, repository: string, digest: string): Promise<boolean> {
  if (await store.get(manifests, contentId(repository, digest))) await noteDeletion(store, { repository, digest });
  for (const { id } of await store.find(images, { index: 'byDigest', equals: { repository, digest } })) {
    await store.delete(images, id);
  }
  for (const { id } of await store.find(tags, { index: 'byDigest', equals: { repository, digest } })) {
    // A tag that was moved on meanwhile stays.
    await store.delete(tags, id, (tag) => tag.digest === digest);
  }
  return await store.delete(manifests, contentId(repository, digest));
}
