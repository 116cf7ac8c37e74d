import { createHash } from 'node:crypto';
import type { Hash, HashAlgorithm } from '../hash/hash.ts';
import type { HashThreads } from '../hash/hash-threads.ts';

/** For fewer bytes, a message to a thread and its answer cost more than the hash. */
const minBytes = 256 * 1024;

/** How much of a file a thread hashes at once: other hashes wait for the same thread. */
const maxPartBytes = 4 * 1024 * 1024;

/** How far a hash may be behind the writer of a file: earlier bytes may no longer be in the page cache. */
const maxBehindBytes = 64 * 1024 * 1024;

/** Reads an upload from a position to its end. */
type ReadFrom = (start: number) => AsyncIterable<Uint8Array> | Promise<AsyncIterable<Uint8Array>>;

/**
 * The hash of an upload, computed on a thread during the writing. It may lag or fail: `digest` reads the bytes that are not hashed.
 * So hashing fails no append, and a small upload needs no thread.
 */
export class UploadHash implements Disposable {
  readonly algorithm: HashAlgorithm;
  readonly #threads: HashThreads;
  #hash: Hash | undefined;
  #hashedBytes = 0;
  #digest: { readonly sizeBytes: number; readonly digest: string } | undefined;
  #writtenBytes = 0;
  #reading: Promise<void> | undefined;
  /** Hashing failed during the writing; `digest` hashes the rest. */
  #hasFailed = false;

  constructor(threads: HashThreads, algorithm: HashAlgorithm) {
    this.#threads = threads;
    this.algorithm = algorithm;
  }

  /** How many bytes from the start of the upload are hashed. */
  get hashedBytes(): number {
    return this.#hashedBytes;
  }

  /** Hashes the next bytes of the upload, which are in shared memory. Does nothing for a small upload. Never rejects. */
  async update(bytes: Uint8Array<SharedArrayBuffer>): Promise<void> {
    if (this.#hasFailed || (!this.#hash && bytes.byteLength < minBytes)) return;
    await this.#update(bytes).catch(() => (this.#hasFailed = true));
  }

  /** Whether the hash is near enough to `offset` to follow a file that is written from there. */
  canFollow(offset: number): boolean {
    return !this.#hasFailed && offset - this.#hashedBytes <= maxBehindBytes;
  }

  /**
   * Hashes the bytes that were written to a file. A thread reads them from the page cache, which costs less than transferring each
   * chunk. Resolves when more may be written. Never rejects.
   */
  async follow(fd: number, writtenBytes: number): Promise<void> {
    this.#writtenBytes = writtenBytes;
    if (this.#hasFailed) return;
    if (!this.#reading && writtenBytes - this.#hashedBytes >= minBytes) {
      this.#reading = this.#readFrom(fd, minBytes).finally(() => (this.#reading = undefined));
    }
    if (writtenBytes - this.#hashedBytes > maxBehindBytes) await this.#reading;
  }

  /** Hashes the rest of the written bytes, unless the upload is small. Resolves when the file may be closed. Never rejects. */
  async finish(fd: number): Promise<void> {
    await this.#reading;
    if (this.#hash) await this.#readFrom(fd, 1);
  }

  /** The digest of an upload of this size. Rejects with errors of reading and hashing, and when the signal aborts. */
  async digest(sizeBytes: number, read: ReadFrom, signal: AbortSignal): Promise<string> {
    if (this.#digest?.sizeBytes === sizeBytes) return this.#digest.digest;
    if (this.#hashedBytes > sizeBytes) this[Symbol.dispose]();
    const isSmall = !this.#hash && sizeBytes < minBytes;
    const hex = isSmall ? await this.#hashSmall(sizeBytes, read) : await this.#hashRest(sizeBytes, read, signal);
    this.#digest = { sizeBytes, digest: `${this.algorithm}:${hex}` };
    return this.#digest.digest;
  }

  /** Discards the hash. */
  [Symbol.dispose](): void {
    this.#hash?.[Symbol.dispose]();
    this.#hash = undefined;
    this.#hashedBytes = 0;
  }

  /** On this thread. */
  async #hashSmall(sizeBytes: number, read: ReadFrom): Promise<string> {
    const hash = createHash(this.algorithm);
    if (sizeBytes > 0) for await (const bytes of await read(0)) hash.update(bytes);
    return hash.digest('hex');
  }

  async #hashRest(sizeBytes: number, read: ReadFrom, signal: AbortSignal): Promise<string> {
    if (this.#hashedBytes < sizeBytes) {
      for await (const bytes of await read(this.#hashedBytes)) {
        signal.throwIfAborted();
        await this.#update(bytes);
      }
    }
    const hash = this.#begun();
    // A hash returns its digest once.
    this.#hash = undefined;
    this.#hashedBytes = 0;
    return await hash.digest();
  }

  /** Never rejects. */
  async #readFrom(fd: number, atLeastBytes: number): Promise<void> {
    try {
      while (this.#writtenBytes - this.#hashedBytes >= atLeastBytes) {
        const start = this.#hashedBytes;
        const end = Math.min(this.#writtenBytes, start + maxPartBytes);
        await this.#advance(end, async (hash) => await hash.updateFromFile(fd, { start, end }));
      }
    } catch {
      this.#hasFailed = true;
    }
  }

  async #update(bytes: Uint8Array): Promise<void> {
    // Computed before the memory is transferred.
    const end = this.#hashedBytes + bytes.byteLength;
    await this.#advance(end, async (hash) => await hash.update(bytes));
  }

  async #advance(toBytes: number, update: (hash: Hash) => Promise<void>): Promise<void> {
    try {
      await update(this.#begun());
    } catch (error) {
      this[Symbol.dispose]();
      throw error;
    }
    this.#hashedBytes = toBytes;
  }

  #begun(): Hash {
    return (this.#hash ??= this.#threads.begin(this.algorithm));
  }
}
