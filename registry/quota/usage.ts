/** Measures what an account stores. Finds everything by the names of its repositories, even if their services were deleted. */
import type { Blobs } from '../../core/blobs/blobs.ts';
import type { Store } from '../../core/store/store.ts';
import { blobLinks, manifestBatchSize, manifests, uploadSessions } from '../content/documents.ts';
import { repositoriesOf } from '../content/repositories.ts';

/** Further uploads are not counted: without a limit of uploads, the limit of bytes is approximate. */
const maxUploadsMeasured = 10_000;

/** How many uploads are read at a time. */
const uploadBatch = 16;

/** The bytes of an account's manifests and blobs. A blob in several of its repositories counts once. */
export async function storedBytes(store: Store, account: string): Promise<number> {
  const ofAccount = { index: 'byRepository', range: repositoriesOf(account) } as const;
  const counted = new Set<string>();
  let bytes = 0;
  for await (const { digest, sizeBytes } of store.scan(blobLinks, ofAccount)) {
    if (counted.has(digest)) continue;
    counted.add(digest);
    bytes += sizeBytes;
  }
  for await (const { sizeBytes } of store.scan(manifests, { ...ofAccount, batchSize: manifestBatchSize })) {
    bytes += sizeBytes;
  }
  return bytes;
}

/** Whether an account has a blob in any of its repositories. */
export async function hasBlob(store: Store, account: string, digest: string): Promise<boolean> {
  const range = repositoriesOf(account);
  const found = await store.find(blobLinks, { index: 'byDigest', equals: { digest }, range, limit: 1 });
  return found.length > 0;
}

/** The IDs of an account's open upload sessions, up to `limit` of them. */
export async function openUploadIds(store: Store, account: string, limit = maxUploadsMeasured): Promise<string[]> {
  const range = repositoriesOf(account);
  const found = await store.find(uploadSessions, { index: 'byRepository', range, limit });
  return found.map(({ id }) => id);
}

/** The bytes of unfinished uploads. */
export async function uploadedBytes(blobs: Blobs, uploadIds: readonly string[]): Promise<number> {
  let bytes = 0;
  for (let at = 0; at < uploadIds.length; at += uploadBatch) {
    const batch = uploadIds.slice(at, at + uploadBatch);
    const found = await Promise.all(batch.map((uploadId) => blobs.statUpload(uploadId)));
    for (const upload of found) bytes += upload?.sizeBytes ?? 0;
  }
  return bytes;
}
