import type { ByteRange } from '../../core/blobs/blobs.ts';
import { RegistryError } from '../errors.ts';

/** As many as podman asks for at once of an image in `zstd:chunked`. It and stargz ask for less when they are refused. */
const maxRanges = 1_024;

/**
 * The ranges that a `Range` header asks for (RFC 9110, section 14), none of which touches one before it. `undefined` stands
 * for the whole: no header, another unit, nonsense, or ranges that overlap or go backwards, all of which a server may ignore.
 * Throws `range-unsatisfiable` and `too-many-ranges`.
 */
export function parseRanges(header: string | undefined, sizeBytes: number): readonly ByteRange[] | undefined {
  const [, list] = /^bytes=(.*)$/.exec(header?.replaceAll(/[ \t]/g, '') ?? '') ?? [];
  const wanted = list?.split(',') ?? [];
  if (wanted.length > maxRanges) throw new RegistryError('too-many-ranges', { detail: `at most ${maxRanges}` });
  const ranges: ByteRange[] = [];
  for (const text of wanted) {
    const range = parseRange(text, sizeBytes);
    if (range === 'malformed') return undefined;
    if (range.start <= (ranges.at(-1)?.end ?? -1)) return undefined;
    // `bytes=500-0` too: it asks for nothing that there is.
    if (range.start <= range.end) ranges.push(range);
  }
  if (ranges.length > 0) return ranges;
  if (wanted.length === 0) return undefined;
  throw new RegistryError('range-unsatisfiable', { headers: { 'content-range': `bytes */${sizeBytes}` } });
}

function parseRange(text: string, sizeBytes: number): ByteRange | 'malformed' {
  const [, first = '', last = ''] = /^([0-9]*)-([0-9]*)$/.exec(text) ?? [];
  if (first === '' && last === '') return 'malformed';
  const start = first === '' ? Math.max(0, sizeBytes - Number(last)) : Number(first);
  return { start, end: first === '' || last === '' ? sizeBytes - 1 : Math.min(Number(last), sizeBytes - 1) };
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
