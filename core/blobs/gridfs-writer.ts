/**
 * Writes the bytes of an append as chunks, some at a time.
 *
 * Chunks are inserted, never overwritten at a venture: so a writer that lost its lease without knowing finds what its
 * successor wrote in its way, and stops. Where a chunk is there already (the unfinished last one of the append before, or
 * one that a dead writer left), it is replaced by whoever proves the lease, if nobody else wrote it meanwhile. Whatever
 * happens, the bytes below an upload's recorded size stay as they are.
 */
import type { ObjectId } from 'mongodb';
import type { Semaphore } from '../async/semaphore.ts';
import { again } from './gridfs-errors.ts';
import { chunkId, chunkKey } from './gridfs-layout.ts';
import type { ChunkRecord, Layout } from './gridfs-layout.ts';
import type { HeldUpload } from './gridfs-lease.ts';
import type { UploadHash } from './upload-hash.ts';
import { free } from '../hash/owned-bytes.ts';
import { isDuplicate } from '../store/mongodb-errors.ts';

interface Parts {
  readonly layout: Layout;
  /** Throws if the lease is not held any more. */
  readonly prove: () => Promise<void>;
  /** A permit for each chunk that is being sent to the server, or hashed. */
  readonly permits: Semaphore;
  readonly buffers: ChunkBuffers;
  /** Hashes each chunk in the memory from which it is sent. */
  readonly hash: UploadHash;
}

export class ChunkWriter {
  readonly #chunks: Layout['chunks'];
  readonly #file: ObjectId;
  readonly #holder: ObjectId;
  readonly #chunkBytes: number;
  readonly #prove: () => Promise<void>;
  readonly #permits: Semaphore;
  readonly #buffers: ChunkBuffers;
  readonly #hash: UploadHash;
  /** The chunk that is being filled, and how far. */
  #filling: ChunkBuffer;
  #filledBytes = 0;
  /** What it has of the append before. */
  #tailBytes = 0;
  #hashing: Promise<void> | undefined;
  #n: number;
  readonly #underWay = new Map<number, Promise<void>>();
  /** Ends of chunks that are durable, though those before them may not be yet. */
  readonly #endsAhead = new Map<number, number>();
  #durableChunks: number;
  #durableBytes: number;
  #failure: { readonly error: unknown } | undefined;

  constructor({ upload, holder }: HeldUpload, { layout, prove, permits, buffers, hash }: Parts) {
    this.#chunks = layout.chunks;
    this.#permits = permits;
    this.#buffers = buffers;
    this.#hash = hash;
    this.#file = upload.file;
    this.#holder = holder;
    this.#chunkBytes = upload.chunkBytes;
    this.#prove = prove;
    this.#n = Math.floor(upload.sizeBytes / upload.chunkBytes);
    this.#filling = buffers.take(upload.chunkBytes);
    this.#durableChunks = this.#n;
    this.#durableBytes = upload.sizeBytes;
  }

  /** How many bytes of the upload, from its start on, are durable. */
  get durableBytes(): number {
    return this.#durableBytes;
  }

  /** Reads the unfinished chunk of the append before, to go on with it. */
  async begin(): Promise<void> {
    const tailBytes = this.#durableBytes % this.#chunkBytes;
    if (tailBytes === 0) return;
    const tail = await this.#chunks.findOne(chunkKey(this.#file, this.#n), { promoteBuffers: true });
    if (!tail || tail.data.length < tailBytes) throw new Error(`Chunk ${this.#n} of an upload is incomplete`);
    this.#filling.set(tail.data.subarray(0, tailBytes));
    this.#filledBytes = tailBytes;
    this.#tailBytes = tailBytes;
  }

  /** Copies what came, and frees it; resolves when more may come. Rejects if something could not be written. */
  async write(came: readonly Uint8Array[]): Promise<void> {
    for (const bytes of came) {
      await this.#fill(bytes);
      free(bytes);
    }
  }

  /** Writes the unfinished chunk too; resolves when all that came is durable. */
  async end(): Promise<void> {
    if (this.#filledBytes > this.#tailBytes) await this.#send();
    else this.#buffers.giveBack(this.#filling);
    await Promise.all(this.#underWay.values());
    if (this.#failure) throw this.#failure.error;
  }

  async #fill(bytes: Uint8Array): Promise<void> {
    let done = 0;
    while (done < bytes.length) {
      if (this.#failure) throw this.#failure.error;
      const count = Math.min(bytes.length - done, this.#chunkBytes - this.#filledBytes);
      // Where threads share memory, `set` copies it word by word, and waits for the other thread's core at each one.
      this.#filling.fill(bytes.subarray(done, done + count), this.#filledBytes, this.#filledBytes + count);
      this.#filledBytes += count;
      done += count;
      if (this.#filledBytes === this.#chunkBytes) await this.#sendFilled();
    }
  }

  async #sendFilled(): Promise<void> {
    await this.#send();
    this.#n += 1;
    this.#filledBytes = 0;
    this.#filling = this.#buffers.take(this.#chunkBytes);
  }

  /** Resolves when the chunk is on its way. */
  async #send(): Promise<void> {
    await this.#hashing;
    const permit = await this.#permits.acquire();
    const n = this.#n;
    const buffer = this.#filling;
    const data = buffer.subarray(0, this.#filledBytes);
    const chunk = { _id: chunkId(this.#file, n), ...chunkKey(this.#file, n), data, append: this.#holder };
    const sending = this.#put(chunk)
      .then(() => this.#arrived(n, n * this.#chunkBytes + data.length))
      .catch((error: unknown) => void (this.#failure ??= { error }));
    this.#hashing = this.#update(n, data);
    this.#tailBytes = 0;
    const settled = Promise.all([sending, this.#hashing]).then(() => {
      this.#underWay.delete(n);
      this.#buffers.giveBack(buffer);
      permit[Symbol.dispose]();
    });
    this.#underWay.set(n, settled);
  }

  /** Hashes a chunk from where the hash stands; one that is further behind is left alone. Never rejects. */
  async #update(n: number, data: ChunkBuffer): Promise<void> {
    const hashedBytes = this.#hash.hashedBytes - n * this.#chunkBytes;
    if (hashedBytes >= 0) await this.#hash.update(data.subarray(hashedBytes));
  }

  #arrived(n: number, endBytes: number): void {
    this.#endsAhead.set(n, endBytes);
    for (let end = this.#endsAhead.get(this.#durableChunks); end !== undefined;) {
      this.#endsAhead.delete(this.#durableChunks);
      this.#durableBytes = end;
      this.#durableChunks += 1;
      end = this.#endsAhead.get(this.#durableChunks);
    }
  }

  async #put(chunk: ChunkRecord): Promise<void> {
    try {
      await again(async () => await this.#chunks.insertOne(chunk));
    } catch (error) {
      if (!isDuplicate(error)) throw error;
      await this.#overwrite(chunk);
    }
  }

  /** Ends, as each further round is one that the lease was proven in. */
  async #overwrite(chunk: ChunkRecord): Promise<void> {
    const key = chunkKey(chunk.files_id, chunk.n);
    for (;;) {
      const found = await this.#chunks.findOne(key, { projection: { append: 1 } });
      await this.#prove();
      if (!found) return await this.#put(chunk);
      const unchanged = { ...key, append: found.append };
      const { matchedCount } = await again(
        async () =>
          await this.#chunks.replaceOne({ ...unchanged, append: { $in: [found.append, chunk.append] } }, chunk),
      );
      if (matchedCount > 0) return;
    }
  }
}

/** Memory of a chunk, which a thread that hashes can look at. */
export type ChunkBuffer = Buffer<SharedArrayBuffer>;

/** Memory for chunks, used again: each new megabyte costs the kernel as much time as it takes us to fill it. */
export class ChunkBuffers {
  readonly #unused: ChunkBuffer[] = [];

  /** Memory of this size, with anything in it. */
  take(sizeBytes: number): ChunkBuffer {
    const at = this.#unused.findIndex((buffer) => buffer.length === sizeBytes);
    return this.#unused.splice(at, at < 0 ? 0 : 1)[0] ?? Buffer.from(new SharedArrayBuffer(sizeBytes));
  }

  /** Gives memory back that nobody looks at any more. */
  giveBack(buffer: ChunkBuffer): void {
    this.#unused.push(buffer);
  }

  /**
   * Keeps at most so many that nobody uses. The others are left to the garbage collector, which takes its time: shared memory
   * cannot be freed by hand.
   */
  keep(count: number): void {
    this.#unused.length = Math.min(count, this.#unused.length);
  }
}
