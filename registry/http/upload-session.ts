/** The life of an upload session: what is stored about it, and how it answers. */
import { randomUUID } from 'node:crypto';
import type { OutgoingHttpHeaders } from 'node:http';
import type { GrantedExchange, RegistryContext } from '../context.ts';
import { answer } from './answer.ts';
import type { DigestAlgorithm } from '../content/digests.ts';
import { uploadSessions } from '../content/documents.ts';
import type { UploadSession } from '../content/documents.ts';
import { RegistryError } from '../errors.ts';

interface UploadTarget {
  readonly repository: string;
  readonly uploadId: string;
}

/** Begins a session and answers where it goes on. */
export async function beginUpload(
  { store, blobs, clock, quota }: RegistryContext,
  { response, caller }: GrantedExchange,
  { repository, algorithm }: { readonly repository: string; readonly algorithm: DigestAlgorithm },
): Promise<void> {
  await quota.beginUpload(repository);
  const id = randomUUID();
  try {
    // A crash between the two leaves an upload that no client can reach; the sweep of old uploads deletes it.
    await blobs.createUpload(id);
    await store.insert(uploadSessions, { id, repository, subject: caller.subject, algorithm, startedAt: clock.now() });
  } catch (error) {
    quota.endUpload(repository);
    await blobs.deleteUpload(id).catch(() => {});
    throw error;
  }
  answer(response, 202, uploadHeaders({ repository, uploadId: id }, 0));
}

export async function uploadStatus(
  context: RegistryContext,
  { response, caller }: GrantedExchange,
  target: UploadTarget,
): Promise<void> {
  const { sizeBytes } = await openUpload(context, caller.subject, target);
  answer(response, 204, uploadHeaders(target, sizeBytes));
}

export async function cancelUpload(
  context: RegistryContext,
  { response, caller }: GrantedExchange,
  target: UploadTarget,
): Promise<void> {
  using _taken = context.uploads.enter(target.uploadId);
  await openUpload(context, caller.subject, target);
  await discardUpload(context, target);
  answer(response, 204, {});
}

/** A session that is this repository's and this caller's, and its size so far. Throws `upload-unknown`. */
export async function openUpload(
  { store, blobs }: RegistryContext,
  subject: string,
  { repository, uploadId }: UploadTarget,
): Promise<{ session: UploadSession; sizeBytes: number }> {
  const session = await store.get(uploadSessions, uploadId);
  if (session?.repository !== repository || session.subject !== subject) throw new RegistryError('upload-unknown');
  const upload = await blobs.statUpload(uploadId);
  if (!upload) throw new RegistryError('upload-unknown');
  return { session, sizeBytes: upload.sizeBytes };
}

/**
 * Ends a session without a blob. Its bytes go first: on a full disk the session may stay. After a crash between the two, too,
 * the sweep of old uploads deletes it.
 */
export async function discardUpload(
  { store, blobs, quota }: RegistryContext,
  { repository, uploadId }: UploadTarget,
): Promise<void> {
  const upload = await blobs.statUpload(uploadId);
  if (upload && (await blobs.deleteUpload(uploadId))) quota.giveBack(repository, upload.sizeBytes);
  if (await store.delete(uploadSessions, uploadId)) quota.endUpload(repository);
}

/** Where a session goes on, relative so that it fits however the client reached us, and what it holds. */
export function uploadHeaders({ repository, uploadId }: UploadTarget, sizeBytes: number): Record<string, string> {
  return {
    location: `/v2/${repository}/blobs/uploads/${uploadId}`,
    // Of an empty session too: docker refuses `0--1` and a missing range alike.
    range: `0-${Math.max(0, sizeBytes - 1)}`,
    'docker-upload-uuid': uploadId,
  } satisfies OutgoingHttpHeaders;
}
