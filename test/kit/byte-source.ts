import type { ByteSource } from '../../core/blobs/blobs.ts';

/** Chunks that come one by one. */
export async function* bytesOf(...chunks: readonly Uint8Array[]): ByteSource {
  for (const chunk of chunks) yield [chunk];
}
