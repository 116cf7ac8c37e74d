/**
 * Pushing blobs. The blobs hash bytes while they arrive; then the blob is linked to the repository, its bytes are made durable and
 * published under their digest, by which it becomes visible, and the session goes. After a crash in between the client finds
 * no blob and pushes again.
 */
import { randomUUID } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import type { GrantedExchange, RegistryContext } from '../context.ts';
import { answer } from './answer.ts';
import { mayMount } from './caller.ts';
import { findSource, linkedBlobSize } from '../content/blob-links.ts';
import { publishBlob, shareBlob } from '../content/blob-publish.ts';
import { parseChunkRange } from './byte-range.ts';
import { algorithmOf, checkedAlgorithm, checkedDigest } from '../content/digests.ts';
import type { DigestAlgorithm } from '../content/digests.ts';
import { isOverLimit } from '../quota/quota.ts';
import { uploadSessions } from '../content/documents.ts';
import { RegistryError } from '../errors.ts';
import { isOutOfSpace } from '../refusals.ts';
import { paced } from './pace.ts';
import { exactly, hasBody } from './request-body.ts';
import { singleParameter } from './request-target.ts';
import { beginUpload, discardUpload, openUpload, uploadHeaders } from './upload-session.ts';

interface UploadTarget {
  readonly repository: string;
  readonly uploadId: string;
}

/** `POST …/blobs/uploads/`: mounts a blob, takes a whole one in one request, or begins a session. */
export async function startUpload(
  context: RegistryContext,
  exchange: GrantedExchange,
  { repository }: { readonly repository: string },
): Promise<void> {
  const { query } = exchange;
  const mount = singleParameter(query, 'mount');
  if (mount !== undefined && (await mountBlob(context, exchange, { repository, digest: checkedDigest(mount) }))) return;
  const digest = singleParameter(query, 'digest');
  if (digest !== undefined && mount === undefined) {
    await pushWhole(context, exchange, { repository, digest: checkedDigest(digest) });
    return;
  }
  const algorithm = checkedAlgorithm(singleParameter(query, 'digest-algorithm'));
  await beginUpload(context, exchange, { repository, algorithm });
}

/** `PATCH`: adds a chunk. */
export async function appendChunk(
  context: RegistryContext,
  exchange: GrantedExchange,
  target: UploadTarget,
): Promise<void> {
  using _taken = context.uploads.enter(target.uploadId);
  const { session, sizeBytes } = await openUpload(context, exchange.caller.subject, target);
  const chunkBytes = checkChunk(exchange.request, target, sizeBytes);
  const { algorithm } = session;
  const size = await receive(context, exchange.request, { ...target, sizeBytes, algorithm, chunkBytes });
  answer(exchange.response, 202, uploadHeaders(target, size));
}

/** `PUT`: adds the last chunk, if there is one, and makes the upload a blob if it has the digest that the client says. */
export async function finishUpload(
  context: RegistryContext,
  exchange: GrantedExchange,
  target: UploadTarget,
): Promise<void> {
  const { request, query } = exchange;
  const digest = checkedDigest(singleParameter(query, 'digest'));
  using _taken = context.uploads.enter(target.uploadId);
  const { sizeBytes } = await openUpload(context, exchange.caller.subject, target);
  const chunkBytes = checkChunk(request, target, sizeBytes);
  const chunk = { ...target, sizeBytes, algorithm: algorithmOf(digest), chunkBytes };
  if (hasBody(request)) await receive(context, request, chunk);
  await publish(context, { ...target, digest });
  if (await context.store.delete(uploadSessions, target.uploadId)) context.quota.endUpload(target.repository);
  answerBlob(exchange, target.repository, digest);
}

/** Links a blob of another repository that the caller may read. What it may not read is as absent: no error, no mount. */
async function mountBlob(
  context: RegistryContext,
  exchange: GrantedExchange,
  { repository, digest }: { readonly repository: string; readonly digest: string },
): Promise<boolean> {
  const { caller, query } = exchange;
  const source = singleParameter(query, 'from') ?? (await findSource(context, digest, caller));
  if (source === undefined || !(await mayMount(context, caller, source))) return false;
  const sizeBytes = await linkedBlobSize(context, source, digest);
  if (sizeBytes === undefined) return false;
  await context.quota.takeBlob(repository, { digest, sizeBytes });
  if (!(await shareBlob(context, { repository, digest, sizeBytes }))) return false;
  answerBlob(exchange, repository, digest);
  return true;
}

/** A push in one request needs no session: nobody else can know of the upload. */
async function pushWhole(
  context: RegistryContext,
  exchange: GrantedExchange,
  { repository, digest }: { readonly repository: string; readonly digest: string },
): Promise<void> {
  const uploadId = randomUUID();
  await context.blobs.createUpload(uploadId);
  try {
    const upload = { repository, uploadId, sizeBytes: 0, algorithm: algorithmOf(digest) };
    if (hasBody(exchange.request)) await receive(context, exchange.request, upload);
    await publish(context, { repository, uploadId, digest });
  } catch (error) {
    await discardUpload(context, { repository, uploadId });
    throw error;
  }
  answerBlob(exchange, repository, digest);
}

/**
 * Writes a request's body to the end of an upload. What arrives before the client leaves is kept; an upload that grows too
 * large, or for which there is no space, is discarded.
 */
async function receive(
  context: RegistryContext,
  request: IncomingMessage,
  upload: UploadTarget & {
    readonly sizeBytes: number;
    readonly algorithm: DigestAlgorithm;
    /** How many bytes the client said that it sends now. */
    readonly chunkBytes?: number | undefined;
  },
): Promise<number> {
  const { blobs, quota, clock, signal } = context;
  const { uploadId, sizeBytes, chunkBytes, algorithm } = upload;
  using sent = paced(request, clock);
  const announcedBytes = Number(request.headers['content-length'] ?? chunkBytes ?? 0);
  const chunk = chunkBytes === undefined ? sent.bytes : exactly(chunkBytes, sent.bytes);
  const body = quota.meter(chunk, { ...upload, announcedBytes });
  const stop = AbortSignal.any([signal, sent.signal]);
  try {
    return await blobs.appendUpload(uploadId, sizeBytes, body, { signal: stop, algorithm });
  } catch (error) {
    if (isOverLimit(error) || isOutOfSpace(error)) await discardUpload(context, upload);
    throw error;
  }
}

/** Links an upload and publishes it. One with another digest, or for which there is no space, is discarded. */
async function publish(context: RegistryContext, upload: UploadTarget & { readonly digest: string }): Promise<void> {
  const { uploadId, digest } = upload;
  const { digest: actual, sizeBytes } = await context.blobs.digestUpload(uploadId, algorithmOf(digest), context.signal);
  if (actual !== digest) {
    await discardUpload(context, upload);
    throw new RegistryError('digest-mismatch', { detail: `The content has ${actual}` });
  }
  try {
    await publishChecked(context, { ...upload, sizeBytes });
  } catch (error) {
    if (isOutOfSpace(error)) await discardUpload(context, upload);
    throw error;
  }
}

/** Links an upload that has this digest and size, and publishes it. */
export async function publishChecked(
  context: RegistryContext,
  upload: UploadTarget & { readonly digest: string; readonly sizeBytes: number },
): Promise<void> {
  const { repository, digest, sizeBytes } = upload;
  const isCounted = await context.quota.counts(repository, digest);
  await publishBlob(context, upload);
  if (isCounted) context.quota.giveBack(repository, sizeBytes);
}

/** A chunk that says where it belongs must belong where the upload ends. Returns how long it says to be. */
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

function answerBlob({ response }: GrantedExchange, repository: string, digest: string): void {
  answer(response, 201, { location: `/v2/${repository}/blobs/${digest}`, 'docker-content-digest': digest });
}
