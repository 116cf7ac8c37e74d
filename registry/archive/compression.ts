export type Compression = 'none' | 'gzip' | 'zstd';

/** How bytes are compressed, by the first four of them: names and media types may be wrong. */
export function compressionOf(head: Uint8Array): Compression {
  const [a = 0, b = 0, c = 0, d = 0] = head;
  // RFC 1952, section 2.3.1.
  if (a === 0x1f && b === 0x8b) return 'gzip';
  // RFC 8878, sections 3.1.1 and 3.1.2: a frame, or a skippable one, with which pzstd begins.
  if (a === 0x28 && b === 0xb5 && c === 0x2f && d === 0xfd) return 'zstd';
  if (a >= 0x50 && a <= 0x5f && b === 0x2a && c === 0x4d && d === 0x18) return 'zstd';
  return 'none';
}
