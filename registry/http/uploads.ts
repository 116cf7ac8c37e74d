/**
 * Answers requests that push blobs. The blob driver hashes the bytes while they arrive. Then the blob is linked to the
 * repository, its bytes are made durable and published under their digest, which makes it visible, and the session is deleted.
 * After a crash in between, the client finds no blob and pushes again.
 */
import { randomUUID } from 'node:crypto';
import type { IncomingMessage, OutgoingHttpHeaders } from 'node:http';
import { algorithmOf } from '../../core/hash/hash.ts';
import type { HashAlgorithm } from '../../core/hash/hash.ts';
import { bodyBytes } from '../../core/http/linger.ts';
import { withMinimumRate } from '../../core/http/minimum-rate.ts';
import { findSource, linkedBlobSize } from '../content/blob-links.ts';
import { publishUpload, shareBlob } from '../content/blob-publish.ts';
import { checkedAlgorithm, checkedDigest } from '../content/digests.ts';
import { uploadSessions } from '../content/documents.ts';
import { discardUpload, openUpload } from '../content/uploads.ts';
import type { UploadTarget } from '../content/uploads.ts';
import type { AuthorizedRequest, RegistryContext } from '../context.ts';
import { isOutOfSpace, RegistryError } from '../errors.ts';
import { isOverLimit } from '../quota/quota.ts';
import { answer } from './answer.ts';
import { parseChunkRange } from './byte-range.ts';
import { mayMount } from './caller.ts';
import { exactly } from './request-body.ts';
import { singleParameter } from './request-target.ts';

type RepositoryRequest = AuthorizedRequest<{ readonly repository: string }>;
type UploadRequest = AuthorizedRequest<UploadTarget>;

/** `POST …/blobs/uploads/`: mounts a blob, receives a whole blob in one request, or starts a session. */
export async function startUpload(context: RegistryContext, incoming: RepositoryRequest): Promise<void> {
  const { query } = incoming;
  const mount = singleParameter(query, 'mount');
  if (mount !== undefined && (await mountBlob(context, incoming, checkedDigest(mount)))) return;
  const digest = singleParameter(query, 'digest');
  if (digest !== undefined && mount === undefined) {
    await pushWhole(context, incoming, checkedDigest(digest));
    return;
  }
  await startSession(context, incoming, checkedAlgorithm(singleParameter(query, 'digest-algorithm')));
}

/** `PATCH`: adds a chunk. */
export async function appendChunk(context: RegistryContext, incoming: UploadRequest): Promise<void> {
  const { parameters: target, request, response, caller } = incoming;
  using _busy = context.uploads.reserve(target.uploadId);
  const { session, sizeBytes } = await openUpload(context, caller.subject, target);
  const chunkBytes = checkChunk(request, target, sizeBytes);
  const { algorithm } = session;
  const size = await receive(context, request, { ...target, sizeBytes, algorithm, chunkBytes });
  answer(response, 202, uploadHeaders(target, size));
}

/** `PUT`: adds the last chunk, if there is one, and publishes the upload as a blob if it has the digest in the query. */
export async function finishUpload(context: RegistryContext, incoming: UploadRequest): Promise<void> {
  const { parameters: target, request, caller, query } = incoming;
  const digest = checkedDigest(singleParameter(query, 'digest'));
  using _busy = context.uploads.reserve(target.uploadId);
  const { sizeBytes } = await openUpload(context, caller.subject, target);
  const chunkBytes = checkChunk(request, target, sizeBytes);
  const chunk = { ...target, sizeBytes, algorithm: algorithmOf(digest), chunkBytes };
  if (bodyBytes(request) > 0) await receive(context, request, chunk);
  await publish(context, { ...target, digest });
  if (await context.store.delete(uploadSessions, target.uploadId)) context.quota.endUpload(target.repository);
  answerBlob(incoming, target.repository, digest);
}

/** `GET`: answers how much of an upload has arrived. */
export async function uploadStatus(context: RegistryContext, incoming: UploadRequest): Promise<void> {
  const { parameters: target, response, caller } = incoming;
  const { sizeBytes } = await openUpload(context, caller.subject, target);
  answer(response, 204, uploadHeaders(target, sizeBytes));
}

/** `DELETE`: discards an upload. */
export async function cancelUpload(context: RegistryContext, incoming: UploadRequest): Promise<void> {
  const { parameters: target, response, caller } = incoming;
  using _busy = context.uploads.reserve(target.uploadId);
  await openUpload(context, caller.subject, target);
  await discardUpload(context, target);
  answer(response, 204, {});
}

/** Links a blob of another repository that the caller may read. A blob that it may not read counts as absent: no error, no mount. */
async function mountBlob(context: RegistryContext, incoming: RepositoryRequest, digest: string): Promise<boolean> {
  const { caller, query } = incoming;
  const { repository } = incoming.parameters;
  const source = singleParameter(query, 'from') ?? (await findSource(context, digest, caller));
  if (source === undefined || !(await mayMount(context, caller, source))) return false;
  const sizeBytes = await linkedBlobSize(context, source, digest);
  if (sizeBytes === undefined) return false;
  await context.quota.reserveBlob(repository, { digest, sizeBytes });
  if (!(await shareBlob(context, { repository, digest, sizeBytes }))) return false;
  answerBlob(incoming, repository, digest);
  return true;
}

/** Receives a blob in one request, without a session: no other request can address its upload. */
async function pushWhole(context: RegistryContext, incoming: RepositoryRequest, digest: string): Promise<void> {
  const { repository } = incoming.parameters;
  const uploadId = randomUUID();
  await context.blobs.createUpload(uploadId);
  try {
    const upload = { repository, uploadId, sizeBytes: 0, algorithm: algorithmOf(digest) };
    if (bodyBytes(incoming.request) > 0) await receive(context, incoming.request, upload);
    await publish(context, { repository, uploadId, digest });
  } catch (error) {
    await discardUpload(context, { repository, uploadId });
    throw error;
  }
  answerBlob(incoming, repository, digest);
}

async function startSession(
  { store, blobs, clock, quota }: RegistryContext,
  { response, caller, parameters }: RepositoryRequest,
  algorithm: HashAlgorithm,
): Promise<void> {
  const { repository } = parameters;
  await quota.beginUpload(repository);
  const id = randomUUID();
  try {
    // After a crash between the two, no client can reach the upload; the sweep of uploads deletes it.
    await blobs.createUpload(id);
    await store.insert(uploadSessions, { id, repository, subject: caller.subject, algorithm, startedAt: clock.now() });
  } catch (error) {
    quota.endUpload(repository);
    await blobs.deleteUpload(id).catch(() => {});
    throw error;
  }
  answer(response, 202, uploadHeaders({ repository, uploadId: id }, 0));
}

/**
 * Appends a request body to an upload. Bytes that arrive before the client disconnects are kept; an upload that exceeds a limit, or
 * for which there is no space, is discarded.
 */
async function receive(
  context: RegistryContext,
  request: IncomingMessage,
  upload: UploadTarget & {
    readonly sizeBytes: number;
    readonly algorithm: HashAlgorithm;
    /** The length that the request's `Content-Range` announces. */
    readonly chunkBytes?: number | undefined;
  },
): Promise<number> {
  const { blobs, quota, clock, signal } = context;
  const { uploadId, sizeBytes, chunkBytes, algorithm } = upload;
  using sent = withMinimumRate(request, clock);
  const announcedBytes = Number(request.headers['content-length'] ?? chunkBytes ?? 0);
  const chunk = chunkBytes === undefined ? sent.bytes : exactly(chunkBytes, sent.bytes);
  const body = quota.countAndLimit(chunk, { ...upload, announcedBytes });
  const stop = AbortSignal.any([signal, sent.signal]);
  try {
    return await blobs.appendUpload(uploadId, sizeBytes, body, { signal: stop, algorithm });
  } catch (error) {
    if (isOverLimit(error) || isOutOfSpace(error)) await discardUpload(context, upload);
    throw error;
  }
}

/** Publishes an upload under its digest. Discards the upload if it has another digest, or if there is no space for it. */
async function publish(context: RegistryContext, upload: UploadTarget & { readonly digest: string }): Promise<void> {
  const { uploadId, digest } = upload;
  context.signal.throwIfAborted();
  const { digest: actual, sizeBytes } = await context.blobs.digestUpload(uploadId, algorithmOf(digest), context.signal);
  if (actual !== digest) {
    await discardUpload(context, upload);
    throw new RegistryError('digest-mismatch', { detail: `The content has the digest ${actual}` });
  }
  try {
    await publishUpload(context, { ...upload, sizeBytes });
  } catch (error) {
    if (isOutOfSpace(error)) await discardUpload(context, upload);
    throw error;
  }
}

/** Checks that a chunk with a `Content-Range` starts where the upload ends. Returns the length of the range. */
function checkChunk(request: IncomingMessage, target: UploadTarget, sizeBytes: number): number | undefined {
  const range = parseChunkRange(request.headers['content-range']);
  if (range === undefined) return undefined;
  if (range === 'malformed') throw new RegistryError('upload-range-malformed');
  if (range.start !== sizeBytes || range.end < range.start) {
    throw new RegistryError('upload-range', { headers: uploadHeaders(target, sizeBytes) });
  }
  const chunkBytes = range.end - range.start + 1;
  const length = request.headers['content-length'];
  if (length !== undefined && Number(length) !== chunkBytes) throw new RegistryError('size-invalid');
  return chunkBytes;
}

function answerBlob({ response }: AuthorizedRequest, repository: string, digest: string): void {
  answer(response, 201, { location: `/v2/${repository}/blobs/${digest}`, 'docker-content-digest': digest });
}

/** The location is relative, so that it is valid however the client reaches the registry. */
function uploadHeaders({ repository, uploadId }: UploadTarget, sizeBytes: number): Record<string, string> {
  return {
    location: `/v2/${repository}/blobs/uploads/${uploadId}`,
    // Also for an empty session: docker rejects both `0--1` and a missing range.
    range: `0-${Math.max(0, sizeBytes - 1)}`,
    'docker-upload-uuid': uploadId,
  } satisfies OutgoingHttpHeaders;
}
