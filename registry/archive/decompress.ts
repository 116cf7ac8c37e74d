/** Decompresses an archive into the bytes of its tar. */
import { pipeline } from 'node:stream/promises';
import { constants, createGunzip, createZstdDecompress } from 'node:zlib';
import type { ZstdDecompress } from 'node:zlib';
import { maxZstdWindowLog } from './limits.ts';
import type { ArchiveLimits } from './limits.ts';
import { badArchive, tooLarge } from './api-errors.ts';

type Bytes = AsyncIterable<Uint8Array>;

export type Compression = 'none' | 'gzip' | 'zstd';

/** How many bytes identify a compression. */
const magicBytes = 4;

/** Decompresses gzip and zstd, and passes a plain tar through. Throws if the output exceeds a limit or is a bomb. */
export async function* decompress(source: Bytes, limits: ArchiveLimits): AsyncGenerator<Uint8Array, void, undefined> {
  const sent = { bytes: 0 };
  const whole = withHead(counted(source, sent));
  const head = await whole.next();
  if (head.done) throw badArchive('is empty');
  const compression = compressionOf(head.value);
  const bytesSent = rejoin(head.value, whole);
  const tar = compression === 'none' ? bytesSent : unpack(compression, bytesSent);
  let bytes = 0;
  for await (const chunk of tar) {
    if (bytes === 0 && compression !== 'none' && compressionOf(chunk) !== 'none') {
      throw badArchive('is compressed twice, compress it once');
    }
    bytes += chunk.length;
    if (bytes > limits.maxBytes) throw tooLarge(`unpacks to more than ${limits.maxBytes} bytes`);
    if (bytes > limits.ratioFromBytes && bytes > sent.bytes * limits.maxRatio) {
      throw tooLarge(`unpacks to more than ${limits.maxRatio} times its size; if it is meant to, send it uncompressed`);
    }
    yield chunk;
  }
}

/** Detects a compression by the first four bytes: names and media types may be wrong. */
export function compressionOf(head: Uint8Array): Compression {
  const [a = 0, b = 0, c = 0, d = 0] = head;
  // RFC 1952, section 2.3.1.
  if (a === 0x1f && b === 0x8b) return 'gzip';
  // RFC 8878, sections 3.1.1 and 3.1.2: a frame, or a skippable frame, which pzstd writes first.
  if (a === 0x28 && b === 0xb5 && c === 0x2f && d === 0xfd) return 'zstd';
  if (a >= 0x50 && a <= 0x5f && b === 0x2a && c === 0x4d && d === 0x18) return 'zstd';
  return 'none';
}

async function* unpack(compression: 'gzip' | 'zstd', source: Bytes): AsyncGenerator<Uint8Array, void, undefined> {
  try {
    yield* compression === 'gzip' ? gunzip(source) : unzstd(source);
  } catch (error) {
    if (!isDecompressionError(error)) throw error;
    if (error.code === 'ZSTD_error_frameParameter_windowTooLarge') {
      throw tooLarge('needs more than 8 MiB of memory to unpack; compress it without --long and --ultra');
    }
    throw badArchive(`is damaged or cut off, its ${compression} cannot be decompressed (${error.message})`, error);
  }
}

/** Decompresses gzip, also with several members. Zeros at the end are padding. */
async function* gunzip(source: Bytes): AsyncGenerator<Uint8Array, void, undefined> {
  const decoder = createGunzip();
  const fed = pipeline(source, decoder);
  fed.catch(() => {});
  try {
    for await (const chunk of decoder) yield chunk as Buffer;
    await fed;
  } finally {
    decoder.destroy();
  }
}

/**
 * Decompresses zstd. A file may have several frames (written by pzstd or joined by `cat`), and skippable frames. Node's decoder
 * silently ends when a frame ends inside a chunk, so the rest of the chunk goes to a new decoder.
 */
async function* unzstd(source: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array, void, undefined> {
  let decoder: ZstdDecompress | undefined;
  try {
    for await (const chunk of source) {
      for (let rest = chunk; rest.length > 0;) {
        decoder ??= newDecoder();
        const before = decoder.bytesWritten;
        yield* decode(decoder, rest);
        const used = decoder.bytesWritten - before;
        if (used < rest.length) {
          decoder.destroy();
          decoder = undefined;
        }
        rest = rest.subarray(used);
      }
    }
    if (!decoder) return;
    // Fails if the last frame is incomplete.
    decoder.end();
    for await (const bytes of decoder) yield bytes as Buffer;
  } finally {
    decoder?.destroy();
  }
}

/** Decompresses one chunk, no faster than the output is read. */
async function* decode(decoder: ZstdDecompress, chunk: Uint8Array): AsyncGenerator<Uint8Array, void, undefined> {
  const { promise: done, resolve, reject } = Promise.withResolvers<void>();
  done.catch(() => {});
  let isDone = false;
  let wake: () => void = () => {};
  const onReadable = () => wake();
  decoder.on('error', reject).on('readable', onReadable);
  decoder.write(chunk, (error) => {
    isDone = true;
    wake();
    if (error) reject(error);
    else resolve();
  });
  try {
    for (;;) {
      const readable = new Promise<void>((resume) => (wake = resume));
      const bytes = decoder.read() as Buffer | null;
      if (bytes) yield bytes;
      else if (isDone) return await done;
      else await Promise.race([readable, done]);
    }
  } finally {
    decoder.off('error', reject).off('readable', onReadable);
  }
}

/** A decoder whose errors are reported by the next operation on it, and never end the process. */
function newDecoder(): ZstdDecompress {
  const params = { [constants.ZSTD_d_windowLogMax]: maxZstdWindowLog };
  return createZstdDecompress({ params }).on('error', () => {});
}

function isDecompressionError(error: unknown): error is Error & { readonly code: unknown } {
  return error instanceof Error && 'code' in error && /^(?:Z_|ZSTD_)/.test(String(error.code));
}

async function* counted(source: Bytes, count: { bytes: number }): AsyncGenerator<Uint8Array, void, undefined> {
  for await (const chunk of source) {
    count.bytes += chunk.length;
    yield chunk;
  }
}

/** Makes the first chunk long enough to detect the compression. */
export async function* withHead(source: Bytes): AsyncGenerator<Uint8Array, void, undefined> {
  let head: Uint8Array | undefined = new Uint8Array();
  for await (const chunk of source) {
    if (!head) {
      yield chunk;
      continue;
    }
    head = Buffer.concat([head, chunk]);
    if (head.length < magicBytes) continue;
    yield head;
    head = undefined;
  }
  if (head && head.length > 0) yield head;
}

async function* rejoin(head: Uint8Array, rest: Bytes): AsyncGenerator<Uint8Array, void, undefined> {
  yield head;
  yield* rest;
}
