import type { ByteRange } from '../../core/blobs/blobs.ts';
import { RegistryError } from '../errors.ts';

/** The most ranges that podman requests at once for an image in `zstd:chunked`. After an error, podman and stargz request fewer. */
const maxRanges = 1_024;

/**
 * Parses a `Range` header (RFC 9110, section 14) into ascending ranges that do not overlap. `undefined` means the whole blob:
 * there is no header, or it has another unit, is malformed, or has overlapping or descending ranges, which a server may ignore.
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
    // An empty range, such as `bytes=500-0`, selects nothing.
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
 * Parses the `Content-Range` of a chunk (distribution-spec: `<first>-<last>`, without a unit) into its first and last byte.
 */
export function parseChunkRange(header: string | undefined): ByteRange | 'malformed' | undefined {
  if (header === undefined) return undefined;
  const [, first, last] = /^([0-9]+)-([0-9]+)$/.exec(header) ?? [];
  const range = { start: Number(first), end: Number(last) };
  return Number.isSafeInteger(range.start) && Number.isSafeInteger(range.end) ? range : 'malformed';
}
