/**
 * Copies of blobs of elsewhere on a disk of this machine. An image is pushed once and pulled by every node: whoever asks for a
 * blob the second time makes a copy worth its bytes, and those who come later are served at the speed of a file.
 *
 * They are a shortcut and nothing more: whether there is a blob, and of which generation, is asked where it belongs. Each
 * process begins with none, and several may share the folder.
 */
import { randomUUID } from 'node:crypto';
import { statfs } from 'node:fs/promises';
import type { Readable } from 'node:stream';
import type { Clock } from '../clock/clock.ts';
import type { Log } from '../log/log.ts';
import type { BlobInfo, Blobs, ByteSource, OpenBlob } from './blobs.ts';
import { openFileBlobs } from './filesystem.ts';

export interface BlobCacheOptions {
  readonly folder: string;
  /** What all copies together may take. */
  readonly maxBytes: number;
  /** How much of the disk stays free, because others write there, too. Default: a tenth. */
  readonly freeShare?: number;
  readonly clock: Clock;
  readonly log: Log;
}

interface Copy extends BlobInfo {
  readonly copiedAt: Date;
}

/** A disk may spoil what is on it: no copy is trusted for longer than this. */
const maxAgeMs = 24 * 3_600_000;

/** Smaller ones come as quickly from elsewhere as from a file. */
const minCopyBytes = 1024 * 1024;

/** A copy of a single blob does not push out all others. */
const maxShare = 0.5;

/** How many blobs are remembered as missed once. */
const maxRemembered = 10_000;

export class BlobCache implements AsyncDisposable {
  readonly #options: BlobCacheOptions;
  readonly #files: Blobs;
  /** The one that was used last comes last. */
  readonly #copies = new Map<string, Copy>();
  readonly #missedOnce = new Set<string>();
  #totalBytes = 0;
  /** One copy is made at a time: whoever waits for a blob comes first. */
  #copying: Promise<void> | undefined;
  readonly #timer: Disposable;
  #isClosing = false;

  private constructor(options: BlobCacheOptions, files: Blobs) {
    this.#options = options;
    this.#files = files;
    this.#timer = options.clock.every(maxAgeMs / 24, () => void this.#dropOld());
  }

  /** Begins with no copies: those of a process before go. Throws `BlobsError` if the folder cannot be used. */
  static async open(options: BlobCacheOptions): Promise<BlobCache> {
    const files = await openFileBlobs(options);
    for await (const digest of files.list()) await files.delete(digest);
    for await (const uploadId of files.listUploads()) await files.deleteUpload(uploadId);
    return new BlobCache(options, files);
  }

  /** The copy of a blob, if there is one of this generation; dispose it. */
  async open(digest: string, blob: BlobInfo): Promise<OpenBlob | undefined> {
    const copy = this.#copies.get(digest);
    if (!copy) return undefined;
    const file =
      copy.generation === blob.generation ? await this.#files.open(digest).catch(() => undefined) : undefined;
    if (file?.sizeBytes === blob.sizeBytes) {
      // If it has not been pushed out meanwhile.
      if (this.#copies.delete(digest)) this.#copies.set(digest, copy);
      return file;
    }
    await file?.[Symbol.asyncDispose]();
    await this.#drop(digest, copy);
    return undefined;
  }

  /** Notes that there was no copy; the second time one is made, beside whatever else goes on. */
  miss(digest: string, blob: BlobInfo, read: () => Readable): void {
    const { maxBytes } = this.#options;
    if (blob.sizeBytes < minCopyBytes || blob.sizeBytes > maxBytes * maxShare) return;
    if (!this.#missedOnce.has(digest)) {
      if (this.#missedOnce.size >= maxRemembered) this.#missedOnce.clear();
      this.#missedOnce.add(digest);
      return;
    }
    if (this.#copying || this.#isClosing) return;
    this.#copying = this.#copy(digest, blob, read).finally(() => {
      this.#copying = undefined;
      this.#missedOnce.delete(digest);
    });
  }

  /** A blob is gone where it belongs. */
  async forget(digest: string): Promise<void> {
    const copy = this.#copies.get(digest);
    if (copy) await this.#drop(digest, copy);
  }

  /** Breaks off what is being copied. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#timer[Symbol.dispose]();
    this.#isClosing = true;
    await this.#files[Symbol.asyncDispose]();
    await this.#copying;
  }

  async #copy(digest: string, blob: BlobInfo, read: () => Readable): Promise<void> {
    const { log, clock } = this.#options;
    const uploadId = randomUUID();
    try {
      if (!(await this.#makeRoom(blob.sizeBytes))) return;
      await this.#files.createUpload(uploadId);
      await this.#files.appendUpload(uploadId, 0, batchesOf(read()));
      await this.#files.publishUpload(uploadId, digest, blob.sizeBytes);
      this.#copies.set(digest, { ...blob, copiedAt: clock.now() });
      this.#totalBytes += blob.sizeBytes;
    } catch (error) {
      // Whoever asks for the blob gets it from where it belongs.
      if (!this.#isClosing) log.warn({ err: error, digest }, 'Cannot keep a copy of a blob');
      await this.#files.deleteUpload(uploadId).catch(() => {});
    }
  }

  /** @returns whether there is room now for this much. */
  async #makeRoom(sizeBytes: number): Promise<boolean> {
    for (const [digest, copy] of this.#copies) {
      if (this.#totalBytes + sizeBytes <= this.#options.maxBytes && (await this.#isFree(sizeBytes))) return true;
      await this.#drop(digest, copy);
    }
    return await this.#isFree(sizeBytes);
  }

  async #isFree(sizeBytes: number): Promise<boolean> {
    const { folder, freeShare = 0.1 } = this.#options;
    const { bavail, blocks, bsize } = await statfs(folder);
    return bavail * bsize - sizeBytes > blocks * bsize * freeShare;
  }

  async #drop(digest: string, copy: Copy): Promise<void> {
    if (this.#copies.get(digest) !== copy) return;
    this.#copies.delete(digest);
    this.#totalBytes -= copy.sizeBytes;
    await this.#files.delete(digest).catch(() => {});
  }

  async #dropOld(): Promise<void> {
    const before = this.#options.clock.now().getTime() - maxAgeMs;
    for (const [digest, copy] of this.#copies) if (copy.copiedAt.getTime() < before) await this.#drop(digest, copy);
  }
}

async function* batchesOf(bytes: Readable): ByteSource {
  for await (const chunk of bytes) yield [chunk as Buffer];
}
