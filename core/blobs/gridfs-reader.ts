import { Readable } from 'node:stream';
import type { Writable } from 'node:stream';
import type { ObjectId } from 'mongodb';
import { BlobsError } from './blobs.ts';
import type { ByteRange, OpenBlob } from './blobs.ts';
import { blobErrors } from './gridfs-errors.ts';
import { chunkKey } from './gridfs-layout.ts';
import type { Layout } from './gridfs-layout.ts';
import { postponeRemoval, removalGraceMs } from './gridfs-trash.ts';
import { keptQuiet, send } from './send.ts';

/** Chunks asked for ahead of the reader: hides the way to the server, and all the memory that a stream takes. */
const chunksAhead = 3;

/** More copies than this at a time go chunk by chunk: they may stand still, by the thousand if they mean harm. */
const maxCopiesAhead = 16;

/** The bytes of a file of this size. */
export interface FileBytes {
  readonly file: ObjectId;
  readonly sizeBytes: number;
  readonly chunkBytes: number;
}

/**
 * Reads a file, or a range of it. Each chunk is a question of its own, not part of a cursor: a reader may be as slow as it
 * likes, and a server may restart in between.
 */
export function readFile(layout: Layout, source: FileBytes, range?: ByteRange): Readable {
  const chunks = readChunks(layout, source, { range, recent: {}, ahead: chunksAhead });
  return Readable.from(chunks, { objectMode: false, highWaterMark: source.chunkBytes });
}

/** The chunk that was read last: of a thousand small ranges, many lie in the one that the range before ended in. */
interface RecentChunk {
  n?: number;
  bytes?: Uint8Array;
}

/** Files that are copied to streams: the more of them at a time, the less each reads ahead. */
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
    using _quiet = keptQuiet(to);
    const ahead = this.#copies > maxCopiesAhead ? 1 : chunksAhead;
    for await (const chunk of readChunks(this.#layout, source, { ...part, ahead })) await send(to, chunk);
  }
}

interface Reading {
  readonly range: ByteRange | undefined;
  readonly recent: RecentChunk;
  /** How many chunks to ask for at a time. */
  readonly ahead: number;
}

async function* readChunks(
  layout: Layout,
  source: FileBytes,
  { range, recent, ahead: maxAhead }: Reading,
): AsyncGenerator<Uint8Array> {
  const { file, sizeBytes, chunkBytes } = source;
  const start = range?.start ?? 0;
  const end = Math.min(range?.end ?? Number.POSITIVE_INFINITY, sizeBytes - 1);
  const last = Math.floor(end / chunkBytes);
  const ahead: Promise<Uint8Array>[] = [];
  let asked = Math.floor(start / chunkBytes);
  let postponedAtMs = performance.now();
  for (let n = asked; n <= last; n += 1) {
    for (; asked <= last && ahead.length < maxAhead; asked += 1) {
      const size = Math.min(chunkBytes, sizeBytes - asked * chunkBytes);
      const known = recent.n === asked ? recent.bytes : undefined;
      ahead.push(known ? Promise.resolve(known) : askFor(layout, file, asked, size));
    }
    const chunk = (await ahead.shift()) as Uint8Array;
    recent.n = n;
    recent.bytes = chunk;
    yield chunk.subarray(Math.max(0, start - n * chunkBytes), Math.min(chunk.length, end + 1 - n * chunkBytes));
    if (performance.now() - postponedAtMs < removalGraceMs / 4) continue;
    postponedAtMs = performance.now();
    await blobErrors(async () => await postponeRemoval(layout, file));
  }
}

/** A rejection waits for whoever comes to this chunk; if nobody does, it does not matter. */
function askFor({ chunks }: Layout, file: ObjectId, n: number, sizeBytes: number): Promise<Uint8Array> {
  const answer = blobErrors(async () => {
    const chunk = await chunks.findOne(chunkKey(file, n), { projection: { data: 1 }, promoteBuffers: true });
    // A writer that died may have gone on with the last chunk beyond the recorded size.
    if (chunk && chunk.data.length >= sizeBytes) return chunk.data.subarray(0, sizeBytes);
    throw new BlobsError('damaged', `Chunk ${n} of file ${file.toHexString()} is missing`);
  });
  answer.catch(() => {});
  return answer;
}
