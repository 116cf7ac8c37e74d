/**
 * Copies of blobs of elsewhere on a disk of this machine. An image is pushed once and pulled by every node: the second pull
 * of a blob makes a copy worth its bytes, and later ones are served at the speed of a file.
 *
 * They are a shortcut and nothing more: whether there is a blob, and of which generation, is asked where it belongs. All
 * processes that are given the same folder share its copies, and the limit of what these may take.
 */
import { statfs } from 'node:fs/promises';
import type { Readable } from 'node:stream';
import { PeriodicTask } from '../async/periodic-task.ts';
import type { DiskReserve } from '../files/disk-reserve.ts';
import type { Clock } from '../clock/clock.ts';
import type { Log } from '../log/log.ts';
import type { BlobInfo, OpenBlob } from './blobs.ts';
import { CopiesFolder } from './copies-folder.ts';

export interface BlobCacheOptions {
  readonly folder: string;
  /** What all copies together may take, those of other processes included. */
  readonly maxBytes: number;
  /** How much of the disk stays free, because others write there, too. Default: a tenth. */
  readonly freeShare?: number;
  /** Of that disk: no copy is made at its cost. Default: none. */
  readonly reserve?: DiskReserve;
  readonly clock: Clock;
  readonly log: Log;
}

/** How often copies that are too old are looked for. */
const tidyEveryMs = 3_600_000;

/** Smaller ones come as quickly from elsewhere as from a file. */
const minCopyBytes = 1024 * 1024;

/** A copy of a single blob does not push out all others. */
const maxShare = 0.5;

/** How many blobs are remembered as missed once. */
const maxRemembered = 10_000;

export class BlobCache implements AsyncDisposable {
  readonly #options: BlobCacheOptions;
  readonly #copies: CopiesFolder;
  readonly #missedOnce = new Set<string>();
  /** A process makes one copy at a time: pulls that wait for a blob come first. */
  #copying: Promise<void> | undefined;
  readonly #tidying: PeriodicTask;
  readonly #closing = new AbortController();

  private constructor(options: BlobCacheOptions, copies: CopiesFolder) {
    this.#options = options;
    this.#copies = copies;
    this.#tidying = new PeriodicTask(options.clock, tidyEveryMs, async () => await this.#tidy());
  }

  /** Begins with the copies that are there. Throws `BlobsError` `unavailable` if the folder cannot be used. */
  static async open(options: BlobCacheOptions): Promise<BlobCache> {
    return new BlobCache(options, await CopiesFolder.open(options.folder, options.clock));
  }

  /** The copy of a blob, if there is one of this generation; dispose it. */
  async open(digest: string, blob: BlobInfo): Promise<OpenBlob | undefined> {
    if (!this.#isWorthIt(blob)) return undefined;
    // A pull that cannot have the copy gets the blob from where it belongs.
    return await this.#copies.read(digest, blob).catch(() => undefined);
  }

  /** Notes that there was no copy; the second time one is made, beside whatever else goes on. */
  miss(digest: string, blob: BlobInfo, read: () => Readable): void {
    if (!this.#isWorthIt(blob)) return;
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

  /** A blob is gone where it belongs. */
  async forget(digest: string): Promise<void> {
    await this.#copies.removeAll(digest).catch(() => {});
  }

  /** Breaks off what is being copied. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#closing.abort();
    await Promise.all([this.#copying, this.#tidying[Symbol.asyncDispose]()]);
  }

  #isWorthIt({ sizeBytes }: BlobInfo): boolean {
    return sizeBytes >= minCopyBytes && sizeBytes <= this.#options.maxBytes * maxShare;
  }

  /** Never rejects. */
  async #copy(digest: string, blob: BlobInfo, read: () => Readable): Promise<void> {
    const { signal } = this.#closing;
    try {
      await this.#copies.make({ digest, blob, read, signal, makeRoom: async () => await this.#makeRoom(blob) });
    } catch (error) {
      if (!signal.aborted) this.#options.log.warn({ err: error, digest }, 'Cannot keep a copy of a blob');
    }
  }

  /** Removes what was not used for longest. @returns whether there is room now for this blob, whose room is taken already. */
  async #makeRoom({ sizeBytes }: BlobInfo): Promise<boolean> {
    const files = await this.#copies.list();
    let totalBytes = files.reduce((sum, file) => sum + file.sizeBytes, 0);
    const isRoom = async () => totalBytes <= this.#options.maxBytes && (await this.#isFree(sizeBytes));
    for (const file of files) {
      if ((await isRoom()) || !file.isWhole) break;
      await this.#copies.remove(file.name);
      totalBytes -= file.sizeBytes;
    }
    return await isRoom();
  }

  async #isFree(sizeBytes: number): Promise<boolean> {
    const { folder, freeShare = 0.1, reserve } = this.#options;
    const { bavail, blocks, bsize } = await statfs(folder);
    return bavail * bsize - sizeBytes > Math.max(blocks * bsize * freeShare, reserve?.bytes ?? 0);
  }

  /** Never rejects. */
  async #tidy(): Promise<void> {
    try {
      await this.#copies.tidy();
    } catch (error) {
      this.#options.log.warn({ err: error }, 'Cannot remove old copies of blobs');
    }
  }
}
