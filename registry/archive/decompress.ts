/** From the bytes of an archive as it was sent to the bytes of its tar, however it is compressed. */
import { pipeline } from 'node:stream/promises';
import { createGunzip } from 'node:zlib';
import { compressionOf } from './compression.ts';
import type { ArchiveLimits } from './limits.ts';
import { badArchive, tooLarge } from './api-errors.ts';
import { unzstd } from './unzstd.ts';

type Bytes = AsyncIterable<Uint8Array>;

/** Enough to know a compression by its first bytes. */
const magicBytes = 4;

/** Decompresses gzip and zstd, and lets a plain tar through. What comes out is counted, and bombs are refused. */
export async function* decompress(source: Bytes, limits: ArchiveLimits): AsyncGenerator<Uint8Array, void, undefined> {
  const sent = { bytes: 0 };
  const whole = withHead(counted(source, sent));
  const head = await whole.next();
  if (head.done) throw badArchive('is empty');
  const compression = compressionOf(head.value);
  const tar = compression === 'none' ? rejoin(head.value, whole) : unpack(compression, rejoin(head.value, whole));
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

/** Files of several members too; zeros at the end are padding. */
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

function isDecompressionError(error: unknown): error is Error & { readonly code: unknown } {
  return error instanceof Error && 'code' in error && /^(?:Z_|ZSTD_)/.test(String(error.code));
}

async function* counted(source: Bytes, count: { bytes: number }): AsyncGenerator<Uint8Array, void, undefined> {
  for await (const chunk of source) {
    count.bytes += chunk.length;
    yield chunk;
  }
}

/** The same bytes, of which the first chunk is long enough to tell what they are. */
async function* withHead(source: Bytes): AsyncGenerator<Uint8Array, void, undefined> {
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
