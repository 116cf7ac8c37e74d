/** Answers requests that push, pull or delete manifests, or delete tags. */
import { manifestDeleted, tagDeleted } from '../../contract/messages.ts';
import { tagPattern } from '../../contract/names.ts';
import type { Store } from '../../core/store/store.ts';
import { algorithmOf } from '../../core/hash/hash.ts';
import { digestOfBytes } from '../content/digests.ts';
import { contentId, manifests, tagId, tags } from '../content/documents.ts';
import type { StoredManifest } from '../content/documents.ts';
import { renewManifest } from '../content/leases.ts';
import { maxManifestBytes, parseManifest } from '../content/manifest.ts';
import { pushManifest } from '../content/manifest-push.ts';
import { removeManifest, removeTag } from '../content/removal.ts';
import { requireRepository } from '../content/repositories.ts';
import { audited } from '../audit.ts';
import type { AuthorizedRequest, RegistryContext } from '../context.ts';
import { RegistryError } from '../errors.ts';
import { publishEvent } from '../events.ts';
import { answer } from './answer.ts';
import { readBody } from './request-body.ts';
import type { Reference } from './request-target.ts';

interface ManifestTarget {
  readonly repository: string;
  readonly reference: Reference;
}

type ManifestRequest = AuthorizedRequest<ManifestTarget>;

/** The specification asks for at least 10. */
const maxTags = 64;

/** The media type is chosen by the client that pushes. No browser may run a manifest: there may be cookies for this host. */
const inert = { 'content-security-policy': "default-src 'none'; sandbox", 'x-content-type-options': 'nosniff' };

/** `PUT …/manifests/<reference>`. */
export async function putManifest(context: RegistryContext, incoming: ManifestRequest): Promise<void> {
  const { request, response, query, caller } = incoming;
  const { repository, reference } = incoming.parameters;
  const limit = { maxBytes: maxManifestBytes, tooLarge: 'manifest-too-large', account: caller.subject } as const;
  const bytes = await readBody(request, context, limit);
  const manifest = parseManifest(bytes, request.headers['content-type']);
  const digest = digestOfBytes(bytes, 'digest' in reference ? algorithmOf(reference.digest) : 'sha256');
  if ('digest' in reference && reference.digest !== digest) {
    throw new RegistryError('digest-mismatch', { detail: `The content has the digest ${digest}` });
  }
  const tagParameters = checkedTags(query.getAll('tag'));
  const tagNames = 'tag' in reference ? [reference.tag, ...tagParameters] : tagParameters;
  const pushed = { repository, digest, bytes, manifest, tagNames, by: caller.subject };
  const change = { action: 'pushManifest', repository, details: { digest, tags: tagNames }, status: 201 } as const;
  await audited(context, incoming, change, async (record) => await pushManifest(context, { ...pushed, record }));
  answer(response, 201, {
    location: `/v2/${repository}/manifests/${digest}`,
    'docker-content-digest': digest,
    ...(manifest.subject && { 'oci-subject': manifest.subject.digest }),
    ...(tagParameters.length > 0 && { 'oci-tag': tagParameters }),
  });
}

/** `GET` and `HEAD`. Answers the bytes and the type that were pushed: another form would have another digest. */
export async function readManifest(context: RegistryContext, incoming: ManifestRequest): Promise<void> {
  const { request, response } = incoming;
  const { repository, reference } = incoming.parameters;
  await requireRepository(context.store, repository);
  // A client that checks for a digest does not push a manifest that exists, so the manifest is leased.
  const manifest =
    request.method === 'HEAD' && 'digest' in reference
      ? await renewManifest(context, repository, reference.digest)
      : await findManifest(context.store, { repository, reference });
  if (!manifest) throw new RegistryError('manifest-unknown');
  const { digest, mediaType, bytes } = manifest;
  const headers = { 'docker-content-digest': digest, etag: `"${digest}"` };
  if (request.headers['if-none-match'] === headers.etag) answer(response, 304, headers);
  else answer(response, 200, { ...headers, ...inert, 'content-type': mediaType }, bytes);
}

/** Deletes a tag, or by digest a manifest and every tag that points to it. */
export async function deleteManifest(context: RegistryContext, incoming: ManifestRequest): Promise<void> {
  const { response, caller } = incoming;
  const { repository, reference } = incoming.parameters;
  await requireRepository(context.store, repository);
  await recordedDeletion(context, incoming);
  const by = caller.subject;
  if ('tag' in reference) publishEvent(context, tagDeleted, { repository, tag: reference.tag, by });
  else publishEvent(context, manifestDeleted, { repository, digest: reference.digest, by });
  answer(response, 202, {});
}

async function recordedDeletion(context: RegistryContext, incoming: ManifestRequest): Promise<void> {
  const { store } = context;
  const { repository, reference } = incoming.parameters;
  const action = 'tag' in reference ? 'deleteTag' : 'deleteManifest';
  await audited(context, incoming, { action, repository, details: reference, status: 202 }, async (record) => {
    const named =
      'tag' in reference
        ? await store.get(tags, tagId(repository, reference.tag))
        : await store.get(manifests, contentId(repository, reference.digest));
    if (!named) throw new RegistryError('manifest-unknown');
    await record();
    const isDeleted =
      'tag' in reference
        ? await removeTag(store, repository, reference.tag)
        : await removeManifest(store, { repository, digest: reference.digest });
    // After the deletion of its last tag, the collector may have deleted the manifest itself.
    if (!isDeleted && 'tag' in reference) throw new RegistryError('manifest-unknown');
  });
}

function checkedTags(list: readonly string[]): string[] {
  if (list.length > maxTags) throw new RegistryError('too-many-tags');
  if (!list.every((tag) => tagPattern.test(tag))) throw new RegistryError('tag-invalid');
  return [...new Set(list)];
}

async function findManifest(
  store: Store,
  { repository, reference }: ManifestTarget,
): Promise<StoredManifest | undefined> {
  const digest =
    'digest' in reference ? reference.digest : (await store.get(tags, tagId(repository, reference.tag)))?.digest;
  return digest === undefined ? undefined : await store.get(manifests, contentId(repository, digest));
}
