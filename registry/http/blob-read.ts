/** Pulling and deleting blobs. */
import { addAbortListener } from 'node:events';
import type { OutgoingHttpHeaders } from 'node:http';
import type { GrantedExchange, RegistryContext } from '../context.ts';
import { answer } from './answer.ts';
import { openLinkedBlob } from '../content/blob-links.ts';
import { parseRanges } from './byte-range.ts';
import { blobLinks, contentId } from '../content/documents.ts';
import { RegistryError } from '../errors.ts';
import { renewLink } from '../content/leases.ts';
import { sendRanges, sendWhole } from './blob-send.ts';

interface BlobTarget {
  readonly repository: string;
  readonly digest: string;
}

/** Who asks whether a blob is here does not push it then: the lease is renewed before that is promised. */
export async function headBlob(
  context: RegistryContext,
  { response }: GrantedExchange,
  { repository, digest }: BlobTarget,
): Promise<void> {
  const found = (await renewLink(context, repository, digest)) && (await context.blobs.stat(digest));
  if (!found) throw new RegistryError('blob-unknown');
  answer(response, 200, { ...blobHeaders(digest), 'content-length': found.sizeBytes });
}

export async function getBlob(
  context: RegistryContext,
  { request, response }: GrantedExchange,
  { repository, digest }: BlobTarget,
): Promise<void> {
  await using blob = await openLinkedBlob(context, repository, digest);
  if (!blob) throw new RegistryError('blob-unknown');
  const { sizeBytes } = blob;
  const headers = blobHeaders(digest);
  if (request.headers['if-none-match'] === headers.etag) {
    answer(response, 304, headers);
    return;
  }
  const ifRange = request.headers['if-range'];
  const mayBeParts = ifRange === undefined || ifRange === headers.etag;
  const ranges = mayBeParts ? parseRanges(request.headers.range, sizeBytes) : undefined;
  using _watched = context.pulls.watch(response);
  using _cut = addAbortListener(context.signal, () => response.destroy());
  // Ends when the client leaves in the middle, which those that read in parallel ranges do as a habit.
  await (ranges ? sendRanges(response, blob, { ranges, headers }) : sendWhole(response, blob, headers));
  response.end();
}

/** Takes a blob out of a repository. Its bytes stay for other repositories; those that nobody has any more are collected. */
export async function deleteBlob(
  { store }: RegistryContext,
  { response }: GrantedExchange,
  { repository, digest }: BlobTarget,
): Promise<void> {
  const isDeleted = await store.delete(blobLinks, contentId(repository, digest));
  if (!isDeleted) throw new RegistryError('blob-unknown');
  answer(response, 202, {});
}

function blobHeaders(digest: string): OutgoingHttpHeaders & { etag: string } {
  return {
    'content-type': 'application/octet-stream',
    // Blobs are whatever somebody pushed: no browser shall guess what they are and show them.
    'x-content-type-options': 'nosniff',
    'docker-content-digest': digest,
    'accept-ranges': 'bytes',
    etag: `"${digest}"`,
  };
}
