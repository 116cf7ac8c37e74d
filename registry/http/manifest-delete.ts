/** Answers requests that delete manifests and tags. */
import { manifestDeleted, tagDeleted } from '../../contract/messages.ts';
import type { GrantedExchange, RegistryContext } from '../context.ts';
import { answer } from './answer.ts';
import { RegistryError } from '../errors.ts';
import { tell } from '../events.ts';
import { requireRepository } from '../content/repositories.ts';
import type { Reference } from './request-target.ts';
import { removeManifest, removeTag } from '../content/removal.ts';

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
      ? await removeTag(store, repository, reference.tag)
      : await removeManifest(store, { repository, digest: reference.digest });
  if (!deleted) throw new RegistryError('manifest-unknown');
  const by = caller.subject;
  if ('tag' in reference) tell(context, tagDeleted, { repository, tag: reference.tag, by });
  else tell(context, manifestDeleted, { repository, digest: reference.digest, by });
  answer(response, 202, {});
}
