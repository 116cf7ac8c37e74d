/** Pulling manifests, as the bytes and the type they were pushed with: another form would have another digest. */
import type { Store } from '../../core/store/store.ts';
import type { GrantedExchange, RegistryContext } from '../context.ts';
import { answer } from './answer.ts';
import { contentId, manifests, tagId, tags } from '../content/documents.ts';
import type { StoredManifest } from '../content/documents.ts';
import { RegistryError } from '../errors.ts';
import { renewManifest } from '../content/leases.ts';
import { requireRepository } from '../content/repositories.ts';
import type { Reference } from './request-target.ts';

/** Whoever pushes chooses the type. Should a browser come by, nothing in a manifest runs: there may be cookies of this host. */
const inert = { 'content-security-policy': "default-src 'none'; sandbox", 'x-content-type-options': 'nosniff' };

/** GET and HEAD. */
export async function readManifest(
  context: RegistryContext,
  { request, response }: GrantedExchange,
  { repository, reference }: { readonly repository: string; readonly reference: Reference },
): Promise<void> {
  await requireRepository(context.store, repository);
  // Who asks for a digest before a push does not push what is here: it is leased to whoever builds on it.
  const manifest =
    request.method === 'HEAD' && 'digest' in reference
      ? await renewManifest(context, repository, reference.digest)
      : await findManifest(context.store, repository, reference);
  if (!manifest) throw new RegistryError('manifest-unknown');
  const { digest, mediaType, bytes } = manifest;
  const headers = { 'docker-content-digest': digest, etag: `"${digest}"` };
  if (request.headers['if-none-match'] === headers.etag) answer(response, 304, headers);
  else answer(response, 200, { ...headers, ...inert, 'content-type': mediaType }, bytes);
}

/** The manifest that a tag or digest stands for in a repository. */
async function findManifest(
  store: Store,
  repository: string,
  reference: Reference,
): Promise<StoredManifest | undefined> {
  const digest =
    'digest' in reference ? reference.digest : (await store.get(tags, tagId(repository, reference.tag)))?.digest;
  return digest === undefined ? undefined : await store.get(manifests, contentId(repository, digest));
}
