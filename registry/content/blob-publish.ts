/**
 * Giving a repository a blob, next to a collector that removes bytes which no repository has (`collection/bytes.ts`). The link
 * comes first and the tombstone is read after it; the collector marks the tombstone first and reads the links after it. So
 * whoever comes second sees the other.
 */
import { linkBlob } from './blob-links.ts';
import { keepBytes } from './tombstones.ts';
import type { RegistryContext } from '../context.ts';
import { blobLinks } from './documents.ts';

interface Blob {
  readonly repository: string;
  readonly digest: string;
  readonly sizeBytes: number;
}

/**
 * Makes an upload, whose bytes have this digest and size, a blob of a repository. To be compared before: a link to a digest
 * shows the bytes that others have pushed. Until they are published the link shows nothing; after a crash in between the same
 * push, repeated, publishes them.
 */
export async function publishBlob(context: RegistryContext, blob: Blob & { readonly uploadId: string }): Promise<void> {
  const { repository, uploadId, digest, sizeBytes } = blob;
  await linkBlob(context, repository, { digest, sizeBytes });
  await keepBytes(context, digest);
  await context.blobs.publishUpload(uploadId, digest);
}

/** Gives a repository a blob whose bytes are here already. @returns whether they still were. */
export async function shareBlob(context: RegistryContext, blob: Blob): Promise<boolean> {
  const { store, blobs } = context;
  const link = await linkBlob(context, blob.repository, blob);
  await keepBytes(context, blob.digest);
  if (await blobs.stat(blob.digest)) return true;
  // Not if somebody has pushed the blob here meanwhile.
  await store.delete(blobLinks, link.id, ({ usedAt }) => usedAt.getTime() === link.usedAt.getTime());
  return false;
}
