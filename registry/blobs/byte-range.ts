import type { ByteRange } from '../../core/blobs/blobs.ts';

/**
 * The range that a `Range` header asks for (RFC 9110, section 14). `undefined` stands for the whole: no header, another
 * unit, several ranges at once, or nonsense, all of which a server may ignore.
 */
export function parseRange(header: string | undefined, sizeBytes: number): ByteRange | 'unsatisfiable' | undefined {
  const match = /^bytes=([0-9]*)-([0-9]*)$/.exec(header?.replaceAll(' ', '') ?? '');
  const [, first = '', last = ''] = match ?? [];
  if (first === '' && last === '') return undefined;
  const start = first === '' ? Math.max(0, sizeBytes - Number(last)) : Number(first);
  const end = first === '' || last === '' ? sizeBytes - 1 : Math.min(Number(last), sizeBytes - 1);
  // `bytes=500-0` too: it asks for nothing that there is.
  return start > end ? 'unsatisfiable' : { start, end };
}

/**
 * The first and last byte of a chunk, from its `Content-Range` (distribution-spec: `<first>-<last>`, without a unit).
 * `malformed` if it cannot be understood.
 */
export function parseChunkRange(header: string | undefined): ByteRange | 'malformed' | undefined {
  if (header === undefined) return undefined;
  const [, first, last] = /^([0-9]+)-([0-9]+)$/.exec(header) ?? [];
  const range = { start: Number(first), end: Number(last) };
  return Number.isSafeInteger(range.start) && Number.isSafeInteger(range.end) ? range : 'malformed';
}
