/** Answers requests that pull or delete blobs. */
import { randomBytes } from 'node:crypto';
import { addAbortListener } from 'node:events';
import type { OutgoingHttpHeaders, ServerResponse } from 'node:http';
import type { ByteRange, OpenBlob } from '../../core/blobs/blobs.ts';
import { ignoreErrors, send } from '../../core/blobs/send.ts';
import { openLinkedBlob } from '../content/blob-links.ts';
import { blobLinks, contentId } from '../content/documents.ts';
import { renewBlob } from '../content/leases.ts';
import { audited } from '../audit.ts';
import type { AuthorizedRequest, RegistryContext } from '../context.ts';
import { RegistryError } from '../errors.ts';
import { answer } from './answer.ts';
import { parseRanges } from './byte-range.ts';

type BlobRequest = AuthorizedRequest<{ readonly repository: string; readonly digest: string }>;

/** A client that checks for a blob does not push it if it exists, so the lease is renewed before the answer. */
export async function headBlob(context: RegistryContext, { response, parameters }: BlobRequest): Promise<void> {
  const { repository, digest } = parameters;
  const sizeBytes = await renewBlob(context, repository, digest);
  if (sizeBytes === undefined) throw new RegistryError('blob-unknown');
  answer(response, 200, { ...blobHeaders(digest), 'content-length': sizeBytes });
}

/** Answers the whole blob or the requested ranges. */
export async function getBlob(context: RegistryContext, { request, response, parameters }: BlobRequest): Promise<void> {
  const { repository, digest } = parameters;
  await using blob = await openLinkedBlob(context, repository, digest);
  if (!blob) throw new RegistryError('blob-unknown');
  const headers = blobHeaders(digest);
  if (request.headers['if-none-match'] === headers.etag) {
    answer(response, 304, headers);
    return;
  }
  const ifRange = request.headers['if-range'];
  const isUnchanged = ifRange === undefined || ifRange === headers.etag;
  const ranges = isUnchanged ? parseRanges(request.headers.range, blob.sizeBytes) : undefined;
  using _watched = context.downloads.watch(response);
  using _cut = addAbortListener(context.signal, () => response.destroy());
  // Rejects when the client disconnects, as clients that read several ranges in parallel often do.
  const [range, ...others] = ranges ?? [];
  if (!ranges || !range) await sendWhole(response, blob, headers);
  else if (others.length === 0) await sendRange(response, blob, { range, headers });
  else await sendMultipart(response, blob, { ranges, headers });
  response.end();
}

/** Deletes a repository's link to a blob. Garbage collection deletes the bytes when no repository links to them. */
export async function deleteBlob(context: RegistryContext, incoming: BlobRequest): Promise<void> {
  const { store } = context;
  const { repository, digest } = incoming.parameters;
  const link = contentId(repository, digest);
  const change = { action: 'deleteBlob', repository, details: { digest }, status: 202 } as const;
  await audited(context, incoming, change, async (record) => {
    if (!(await store.get(blobLinks, link))) throw new RegistryError('blob-unknown');
    await record();
    if (!(await store.delete(blobLinks, link))) throw new RegistryError('blob-unknown');
  });
  answer(incoming.response, 202, {});
}

function blobHeaders(digest: string): OutgoingHttpHeaders & { etag: string } {
  return {
    'content-type': 'application/octet-stream',
    // Clients push any bytes: browsers must not guess their type and show them.
    'x-content-type-options': 'nosniff',
    'docker-content-digest': digest,
    'accept-ranges': 'bytes',
    etag: `"${digest}"`,
  };
}

async function sendWhole(response: ServerResponse, blob: OpenBlob, headers: OutgoingHttpHeaders): Promise<void> {
  response.writeHead(200, { ...headers, 'content-length': blob.sizeBytes });
  await blob.copyTo(response);
}

async function sendRange(
  response: ServerResponse,
  blob: OpenBlob,
  { range, headers }: { readonly range: ByteRange; readonly headers: OutgoingHttpHeaders },
): Promise<void> {
  const about = { 'content-length': lengthOf(range), 'content-range': contentRange(range, blob.sizeBytes) };
  response.writeHead(206, { ...headers, ...about });
  await blob.copyTo(response, range);
}

/** Sends several ranges as `multipart/byteranges` (RFC 9110, section 14.6) to clients that fetch missing parts of a layer. */
async function sendMultipart(
  response: ServerResponse,
  blob: OpenBlob,
  { ranges, headers }: { readonly ranges: readonly ByteRange[]; readonly headers: OutgoingHttpHeaders },
): Promise<void> {
  // Random, so that no pushed blob can contain it.
  const boundary = randomBytes(16).toString('hex');
  const type = String(headers['content-type']);
  const parts = ranges.map((range) => ({ range, head: partHead(boundary, type, contentRange(range, blob.sizeBytes)) }));
  const end = Buffer.from(`\r\n--${boundary}--\r\n`, 'latin1');
  response.writeHead(206, {
    ...headers,
    'content-type': `multipart/byteranges; boundary=${boundary}`,
    'content-length': parts.reduce((sum, { range, head }) => sum + head.length + lengthOf(range), end.length),
  });
  using _quiet = ignoreErrors(response);
  for (const { range, head } of parts) {
    await send(response, head);
    await blob.copyTo(response, range);
  }
  await send(response, end);
}

function partHead(boundary: string, type: string, range: string): Buffer {
  return Buffer.from(`\r\n--${boundary}\r\ncontent-type: ${type}\r\ncontent-range: ${range}\r\n\r\n`, 'latin1');
}

function lengthOf({ start, end }: ByteRange): number {
  return end - start + 1;
}

function contentRange({ start, end }: ByteRange, sizeBytes: number): string {
  return `bytes ${start}-${end}/${sizeBytes}`;
}
