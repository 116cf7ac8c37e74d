/**
 * Copies of remote blobs on a local disk. An image is pushed once and pulled by every node, so the second pull of a blob makes a
 * copy, and later pulls read the file. Whether a blob exists, and in which generation, is still read from the server. Processes
 * with the same folder share its copies and its size limit.
 */
import { statfs } from 'node:fs/promises';
import type { Readable } from 'node:stream';
import { PeriodicTask } from '../../async/periodic-task.ts';
import type { DiskReserve } from '../../files/disk-reserve.ts';
import type { Clock } from '../../clock/clock.ts';
import type { Log } from '../../log/log.ts';
import type { BlobInfo, OpenBlob } from '../blobs.ts';
import { CopiesFolder } from './copies-folder.ts';

export interface BlobCacheOptions {
  readonly folder: string;
  /** Limit of all copies together, including those of other processes. */
  readonly maxBytes: number;
  /** The share of the disk that stays free for other writers. Default: a tenth. */
  readonly freeShare?: number;
  /** The reserve of that disk, which copies do not use. Default: none. */
  readonly reserve?: DiskReserve;
  readonly clock: Clock;
  readonly log: Log;
}

/** How often expired copies are removed. */
const expireEveryMs = 3_600_000;

/** The server returns smaller blobs as fast as a file does. */
const minCopyBytes = 1024 * 1024;

/** The largest share of the cache that one copy may use. */
const maxShare = 0.5;

/** How many blobs are remembered after their first miss. */
const maxRemembered = 10_000;

export class BlobCache implements AsyncDisposable {
  readonly #options: BlobCacheOptions;
  readonly #copies: CopiesFolder;
  readonly #missedOnce = new Set<string>();
  /** A process makes one copy at a time, because clients that wait for a blob have priority. */
  #copying: Promise<void> | undefined;
  readonly #expiry: PeriodicTask;
  readonly #closing = new AbortController();

  private constructor(options: BlobCacheOptions, copies: CopiesFolder) {
    this.#options = options;
    this.#copies = copies;
    this.#expiry = new PeriodicTask(options.clock, expireEveryMs, async () => await this.#removeExpired());
  }

  /** Opens a folder with the copies in it. Throws `BlobsError` `unavailable` if the folder cannot be used. */
  static async open(options: BlobCacheOptions): Promise<BlobCache> {
    return new BlobCache(options, await CopiesFolder.open(options.folder, options.clock));
  }

  /** Opens the copy of this generation of a blob, if it exists; dispose it. */
  async open(digest: string, blob: BlobInfo): Promise<OpenBlob | undefined> {
    if (!this.#isCacheable(blob)) return undefined;
    // If the copy cannot be read, the caller reads the blob from the server.
    return await this.#copies.read(digest, blob).catch(() => undefined);
  }

  /** Records that there is no copy of a blob. The second miss starts a copy in the background. */
  recordMiss(digest: string, blob: BlobInfo, read: () => Readable): void {
    if (!this.#isCacheable(blob)) return;
    if (!this.#missedOnce.has(digest)) {
      if (this.#missedOnce.size >= maxRemembered) this.#missedOnce.clear();
      this.#missedOnce.add(digest);
      return;
    }
    if (this.#copying || this.#closing.signal.aborted) return;
    this.#copying = this.#copy(digest, blob, read).finally(() => {
      this.#copying = undefined;
      this.#missedOnce.delete(digest);
    });
  }

  /** Removes the copies of a blob that was deleted. */
  async remove(digest: string): Promise<void> {
    await this.#copies.removeAll(digest).catch(() => {});
  }

  /** Aborts the current copy. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#closing.abort();
    await Promise.all([this.#copying, this.#expiry[Symbol.asyncDispose]()]);
  }

  #isCacheable({ sizeBytes }: BlobInfo): boolean {
    return sizeBytes >= minCopyBytes && sizeBytes <= this.#options.maxBytes * maxShare;
  }

  /** Never rejects. */
  async #copy(digest: string, blob: BlobInfo, read: () => Readable): Promise<void> {
    const { signal } = this.#closing;
    try {
      await this.#copies.make({ digest, blob, read, signal, freeSpace: async () => await this.#freeSpace(blob) });
    } catch (error) {
      if (!signal.aborted) this.#options.log.warn({ err: error, digest }, 'Cannot keep a copy of a blob');
    }
  }

  /** Removes the least recently used copies. @returns whether this blob, whose file already has its final size, fits now. */
  async #freeSpace({ sizeBytes }: BlobInfo): Promise<boolean> {
    const files = await this.#copies.list();
    let totalBytes = files.reduce((sum, file) => sum + file.sizeBytes, 0);
    const fits = async () => totalBytes <= this.#options.maxBytes && (await this.#isFree(sizeBytes));
    for (const file of files) {
      if ((await fits()) || !file.isComplete) break;
      await this.#copies.remove(file.name);
      totalBytes -= file.sizeBytes;
    }
    return await fits();
  }

  async #isFree(sizeBytes: number): Promise<boolean> {
    const { folder, freeShare = 0.1, reserve } = this.#options;
    const { bavail, blocks, bsize } = await statfs(folder);
    return bavail * bsize - sizeBytes > Math.max(blocks * bsize * freeShare, reserve?.bytes ?? 0);
  }

  /** Never rejects. */
  async #removeExpired(): Promise<void> {
    try {
      await this.#copies.removeExpired();
    } catch (error) {
      this.#options.log.warn({ err: error }, 'Cannot remove expired copies of blobs');
    }
  }
}
