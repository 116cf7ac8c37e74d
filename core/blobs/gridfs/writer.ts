/**
 * Writes the bytes of an append as chunks, several at a time.
 *
 * Chunks are inserted. An existing chunk (the unfinished last chunk of the previous append, or a chunk of a dead writer) is
 * replaced only after the writer has confirmed its lease, and only if no other writer has written it meanwhile. So a writer whose
 * lease has expired finds the chunks of its successor, and stops. The bytes below an upload's recorded size never change.
 */
import type { ObjectId } from 'mongodb';
import type { Semaphore } from '../../async/semaphore.ts';
import { retryIdempotent } from './errors.ts';
import { chunkId, chunkKey } from './layout.ts';
import type { ChunkRecord, Layout } from './layout.ts';
import type { HeldUpload } from './lease.ts';
import type { UploadHash } from '../upload-hash.ts';
import { free } from '../../hash/owned-bytes.ts';
import { isDuplicate } from '../../store/mongodb/errors.ts';

interface Parts {
  readonly layout: Layout;
  /** Throws if the lease is lost. */
  readonly confirm: () => Promise<void>;
  /** Limit the chunks that are sent to the server or hashed at a time. */
  readonly permits: Semaphore;
  readonly buffers: ChunkBuffers;
  /** Hashes each chunk from the memory from which it is sent. */
  readonly hash: UploadHash;
}

export class ChunkWriter {
  readonly #chunks: Layout['chunks'];
  readonly #file: ObjectId;
  readonly #holder: ObjectId;
  readonly #chunkBytes: number;
  readonly #confirm: () => Promise<void>;
  readonly #permits: Semaphore;
  readonly #buffers: ChunkBuffers;
  readonly #hash: UploadHash;
  /** The chunk that is being filled. */
  #filling: ChunkBuffer;
  #filledBytes = 0;
  /** How many bytes of the chunk the previous append has stored. */
  #tailBytes = 0;
  #hashing: Promise<void> | undefined;
  #n: number;
  readonly #sending = new Map<number, Promise<void>>();
  /** Ends of durable chunks whose predecessors may not be durable yet. */
  readonly #endsAhead = new Map<number, number>();
  #durableChunks: number;
  #durableBytes: number;
  #failure: { readonly error: unknown } | undefined;

  constructor({ upload, holder }: HeldUpload, { layout, confirm, permits, buffers, hash }: Parts) {
    this.#chunks = layout.chunks;
    this.#permits = permits;
    this.#buffers = buffers;
    this.#hash = hash;
    this.#file = upload.file;
    this.#holder = holder;
    this.#chunkBytes = upload.chunkBytes;
    this.#confirm = confirm;
    this.#n = Math.floor(upload.sizeBytes / upload.chunkBytes);
    this.#filling = buffers.acquire(upload.chunkBytes);
    this.#durableChunks = this.#n;
    this.#durableBytes = upload.sizeBytes;
  }

  /** How many bytes from the start of the upload are durable. */
  get durableBytes(): number {
    return this.#durableBytes;
  }

  /** Reads the unfinished chunk of the previous append, to continue it. */
  async begin(): Promise<void> {
    const tailBytes = this.#durableBytes % this.#chunkBytes;
    if (tailBytes === 0) return;
    const tail = await this.#chunks.findOne(chunkKey(this.#file, this.#n), { promoteBuffers: true });
    if (!tail || tail.data.length < tailBytes) throw new Error(`Chunk ${this.#n} of an upload is incomplete`);
    this.#filling.set(tail.data.subarray(0, tailBytes));
    this.#filledBytes = tailBytes;
    this.#tailBytes = tailBytes;
  }

  /** Copies bytes and frees their memory. Resolves when it can accept more; rejects if a write has failed. */
  async write(chunks: readonly Uint8Array[]): Promise<void> {
    for (const bytes of chunks) {
      await this.#fill(bytes);
      free(bytes);
    }
  }

  /** Writes the unfinished chunk; resolves when all bytes are durable. */
  async end(): Promise<void> {
    if (this.#filledBytes > this.#tailBytes) await this.#send();
    else this.#buffers.release(this.#filling);
    await Promise.all(this.#sending.values());
    if (this.#failure) throw this.#failure.error;
  }

  async #fill(bytes: Uint8Array): Promise<void> {
    let done = 0;
    while (done < bytes.length) {
      if (this.#failure) throw this.#failure.error;
      const count = Math.min(bytes.length - done, this.#chunkBytes - this.#filledBytes);
      // In shared memory, `set` copies word by word and waits for the core of the other thread at each word.
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
    this.#filling = this.#buffers.acquire(this.#chunkBytes);
  }

  /** Resolves when sending the chunk has started. */
  async #send(): Promise<void> {
    await this.#hashing;
    const permit = await this.#permits.acquire();
    const n = this.#n;
    const buffer = this.#filling;
    const data = buffer.subarray(0, this.#filledBytes);
    const chunk = { _id: chunkId(this.#file, n), ...chunkKey(this.#file, n), data, append: this.#holder };
    const sending = this.#put(chunk)
      .then(() => this.#onDurable(n, n * this.#chunkBytes + data.length))
      .catch((error: unknown) => void (this.#failure ??= { error }));
    this.#hashing = this.#update(n, data);
    this.#tailBytes = 0;
    const settled = Promise.all([sending, this.#hashing]).then(() => {
      this.#sending.delete(n);
      this.#buffers.release(buffer);
      permit[Symbol.dispose]();
    });
    this.#sending.set(n, settled);
  }

  /** Hashes the part of a chunk that is not hashed yet, unless earlier chunks are not hashed either. Never rejects. */
  async #update(n: number, data: ChunkBuffer): Promise<void> {
    const hashedBytes = this.#hash.hashedBytes - n * this.#chunkBytes;
    if (hashedBytes >= 0) await this.#hash.update(data.subarray(hashedBytes));
  }

  #onDurable(n: number, endBytes: number): void {
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
      await retryIdempotent(async () => await this.#chunks.insertOne(chunk));
    } catch (error) {
      if (!isDuplicate(error)) throw error;
      await this.#overwrite(chunk);
    }
  }

  /** Terminates, because every round confirms the lease. */
  async #overwrite(chunk: ChunkRecord): Promise<void> {
    const key = chunkKey(chunk.files_id, chunk.n);
    for (;;) {
      const found = await this.#chunks.findOne(key, { projection: { append: 1 } });
      await this.#confirm();
      if (!found) return await this.#put(chunk);
      const unchanged = { ...key, append: found.append };
      const { matchedCount } = await retryIdempotent(
        async () =>
          await this.#chunks.replaceOne({ ...unchanged, append: { $in: [found.append, chunk.append] } }, chunk),
      );
      if (matchedCount > 0) return;
    }
  }
}

/** Memory of a chunk, shared with the hash thread. */
export type ChunkBuffer = Buffer<SharedArrayBuffer>;

/** A pool of memory for chunks: allocating a megabyte takes the kernel as long as filling it takes. */
export class ChunkBuffers {
  readonly #unused: ChunkBuffer[] = [];

  /** Uninitialized memory of this size. */
  acquire(sizeBytes: number): ChunkBuffer {
    const at = this.#unused.findIndex((buffer) => buffer.length === sizeBytes);
    return this.#unused.splice(at, at < 0 ? 0 : 1)[0] ?? Buffer.from(new SharedArrayBuffer(sizeBytes));
  }

  /** Returns memory that is no longer in use. */
  release(buffer: ChunkBuffer): void {
    this.#unused.push(buffer);
  }

  /**
   * Keeps at most `count` unused buffers. The garbage collector frees the others later: shared memory cannot be freed explicitly.
   */
  trim(count: number): void {
    this.#unused.length = Math.min(count, this.#unused.length);
  }
}
