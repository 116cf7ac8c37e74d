import { Readable } from 'node:stream';
import type { Writable } from 'node:stream';
import type { ObjectId } from 'mongodb';
import { BlobsError } from '../blobs.ts';
import type { ByteRange, OpenBlob } from '../blobs.ts';
import { blobErrors } from './errors.ts';
import { chunkKey } from './layout.ts';
import type { Layout } from './layout.ts';
import { postponeDeletion, deletionGraceMs } from './trash.ts';
import { ignoreErrors, send } from '../send.ts';

/** How many chunks are prefetched for a reader: they hide the latency of the server, and are all the memory of a stream. */
const prefetchedChunks = 3;

/** Above this number, copies fetch one chunk at a time: an attacker can open thousands of copies and never read them. */
const maxPrefetchingCopies = 16;

/** A file in GridFS and the size of its bytes. */
export interface FileBytes {
  readonly file: ObjectId;
  readonly sizeBytes: number;
  readonly chunkBytes: number;
}

/**
 * Reads a file, or a range of it. Each chunk is a separate query, not part of a cursor, so readers may be slow, and the server
 * may restart meanwhile.
 */
export function readFile(layout: Layout, source: FileBytes, range?: ByteRange): Readable {
  const chunks = readChunks(layout, source, { range, recent: {}, prefetch: prefetchedChunks });
  return Readable.from(chunks, { objectMode: false, highWaterMark: source.chunkBytes });
}

/** The chunk that was read last: successive small ranges often lie in the same chunk. */
interface RecentChunk {
  n?: number;
  bytes?: Uint8Array;
}

/** Copies files to streams. If there are many at a time, each prefetches fewer chunks. */
export class OpenFiles {
  readonly #layout: Layout;
  #copies = 0;

  constructor(layout: Layout) {
    this.#layout = layout;
  }

  open(source: FileBytes): OpenBlob {
    const recent: RecentChunk = {};
    return {
      sizeBytes: source.sizeBytes,
      copyTo: async (to, range) => {
        this.#copies += 1;
        try {
          await this.#copy(source, to, { range, recent });
        } finally {
          this.#copies -= 1;
        }
      },
      [Symbol.asyncDispose]: async () => {},
    };
  }

  async #copy(source: FileBytes, to: Writable, part: Pick<Reading, 'range' | 'recent'>): Promise<void> {
    using _quiet = ignoreErrors(to);
    const prefetch = this.#copies > maxPrefetchingCopies ? 1 : prefetchedChunks;
    for await (const chunk of readChunks(this.#layout, source, { ...part, prefetch })) await send(to, chunk);
  }
}

interface Reading {
  readonly range: ByteRange | undefined;
  readonly recent: RecentChunk;
  /** How many chunks to prefetch. */
  readonly prefetch: number;
}

async function* readChunks(
  layout: Layout,
  source: FileBytes,
  { range, recent, prefetch }: Reading,
): AsyncGenerator<Uint8Array> {
  const { file, sizeBytes, chunkBytes } = source;
  const start = range?.start ?? 0;
  const end = Math.min(range?.end ?? Number.POSITIVE_INFINITY, sizeBytes - 1);
  const last = Math.floor(end / chunkBytes);
  const fetching: Promise<Uint8Array>[] = [];
  let next = Math.floor(start / chunkBytes);
  let postponedAtMs = performance.now();
  for (let n = next; n <= last; n += 1) {
    for (; next <= last && fetching.length < prefetch; next += 1) {
      const size = Math.min(chunkBytes, sizeBytes - next * chunkBytes);
      const known = recent.n === next ? recent.bytes : undefined;
      fetching.push(known ? Promise.resolve(known) : fetchChunk(layout, file, next, size));
    }
    const chunk = (await fetching.shift()) as Uint8Array;
    recent.n = n;
    recent.bytes = chunk;
    yield chunk.subarray(Math.max(0, start - n * chunkBytes), Math.min(chunk.length, end + 1 - n * chunkBytes));
    if (performance.now() - postponedAtMs < deletionGraceMs / 4) continue;
    postponedAtMs = performance.now();
    await blobErrors(async () => await postponeDeletion(layout, file));
  }
}

/** Fetches a chunk. Its rejection is handled when the reader reaches the chunk, if it does. */
function fetchChunk({ chunks }: Layout, file: ObjectId, n: number, sizeBytes: number): Promise<Uint8Array> {
  const answer = blobErrors(async () => {
    const chunk = await chunks.findOne(chunkKey(file, n), { projection: { data: 1 }, promoteBuffers: true });
    // A writer that died may have extended the last chunk beyond the recorded size.
    if (chunk && chunk.data.length >= sizeBytes) return chunk.data.subarray(0, sizeBytes);
    throw new BlobsError('damaged', `Chunk ${n} of file ${file.toHexString()} is missing`);
  });
  answer.catch(() => {});
  return answer;
}
