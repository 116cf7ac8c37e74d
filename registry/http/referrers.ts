import { findService } from '../../model/service.ts';
import type { AuthorizedRequest, RegistryContext } from '../context.ts';
import { answer } from './answer.ts';
import { manifests } from '../content/documents.ts';
import { indexMediaType, maxManifestBytes } from '../content/manifest.ts';
import { checkedDigest } from '../content/digests.ts';
import { singleParameter } from './request-target.ts';

/** Small, because a manifest has up to 4 MiB and many clients may send requests at once. */
const batchSize = 4;

/** Clients read an answer like a manifest: a page with its envelope stays below the limit for manifests. */
const maxPageBytes = maxManifestBytes - 1024;

/** How many manifests one request reads, including those that do not match. */
const maxScanned = 1_000;

/** How many bytes of manifests one request reads: referrers of 4 MiB each would take seconds otherwise. */
const maxScannedBytes = 32 * 1024 * 1024;

/** `GET …/referrers/<digest>`: lists the referrers of a manifest, which need not exist. Never answers 404. */
export async function listReferrers(
  context: RegistryContext,
  { response, query, parameters }: AuthorizedRequest<{ readonly repository: string; readonly digest: string }>,
): Promise<void> {
  const { repository, digest } = parameters;
  const artifactType = singleParameter(query, 'artifactType') || undefined;
  const last = singleParameter(query, 'last');
  const after = last === undefined ? undefined : checkedDigest(last);
  const page = await readPage(context, { repository, subject: digest, artifactType, after });
  const body = `{"schemaVersion":2,"mediaType":"${indexMediaType}","manifests":[${page.descriptors.join(',')}]}`;
  const next = new URLSearchParams({ ...(artifactType && { artifactType }), ...(page.next && { last: page.next }) });
  answer(
    response,
    200,
    {
      'content-type': indexMediaType,
      ...(artifactType && { 'oci-filters-applied': 'artifactType' }),
      ...(page.next && { link: `</v2/${repository}/referrers/${digest}?${next.toString()}>; rel="next"` }),
    },
    Buffer.from(body),
  );
}

interface PageQuery {
  readonly repository: string;
  readonly subject: string;
  readonly artifactType: string | undefined;
  readonly after: string | undefined;
}

/** Descriptors as JSON, and the digest after which the next page begins, if there is one. */
async function readPage(
  { store }: RegistryContext,
  { repository, subject, artifactType, after }: PageQuery,
): Promise<{ descriptors: string[]; next?: string }> {
  const descriptors: string[] = [];
  // Content of a deleted service may not have been collected yet.
  if (!(await findService(store, repository))) return { descriptors };
  const range = after !== undefined && { range: { after } };
  const ofSubject = { index: 'bySubject', equals: { repository, subject }, ...range, batchSize } as const;
  let last = after;
  let sizeBytes = 0;
  let scanned = 0;
  let scannedBytes = 0;
  for await (const { digest, sizeBytes: manifestBytes, referrer } of store.scan(manifests, ofSubject)) {
    const isEnough = scanned >= maxScanned || scannedBytes >= maxScannedBytes;
    if (isEnough && last !== undefined) return { descriptors, next: last };
    scanned += 1;
    scannedBytes += manifestBytes;
    if (referrer && (artifactType === undefined || referrer.artifactType === artifactType)) {
      sizeBytes += Buffer.byteLength(referrer.descriptor) + 1;
      if (sizeBytes > maxPageBytes && last !== undefined && descriptors.length > 0) return { descriptors, next: last };
      descriptors.push(referrer.descriptor);
    }
    last = digest;
  }
  return { descriptors };
}
