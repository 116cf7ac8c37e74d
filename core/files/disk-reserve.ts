import { statfs } from 'node:fs/promises';
import type { Clock } from '../clock/clock.ts';
import { sizeText } from '../text/size-text.ts';

export interface DiskReserveOptions {
  /** Any folder on the disk. */
  readonly folder: string;
  /** How much of the disk stays free. */
  readonly reserveBytes: number;
  readonly clock: Clock;
}

/** Less than the reserve is free, or would be after a write. */
export class ReserveError extends Error {
  override readonly name = 'ReserveError';
}

/**
 * How long a measurement is valid. All processes together can write at most 200 MB to a disk of 2 GB/s in this time, which is less
 * than the default reserve.
 */
const measureEveryMs = 100;

/** The part of a disk that stays free for the store. Writes that can be rejected, such as pushes, require their space here first. */
export class DiskReserve {
  readonly #options: DiskReserveOptions;
  /** How much may be written until the next measurement. */
  #spareBytes = 0;
  #freeBytes = 0;
  #measuredAtMs = -Infinity;

  constructor(options: DiskReserveOptions) {
    this.#options = options;
  }

  /** The size of the reserve. */
  get bytes(): number {
    return this.#options.reserveBytes;
  }

  /**
   * Resolves if this many bytes can be written without using the reserve, and counts them as written. While enough is free, measures
   * the disk at most every 100 ms, so it can be called before each write. Throws `ReserveError`.
   */
  async require(moreBytes = 0): Promise<void> {
    const ageMs = Math.abs(this.#options.clock.now().getTime() - this.#measuredAtMs);
    if (ageMs >= measureEveryMs || moreBytes > this.#spareBytes) await this.#measure();
    if (this.#spareBytes < moreBytes) throw new ReserveError(this.#problem());
    this.#spareBytes -= moreBytes;
  }

  async #measure(): Promise<void> {
    const { folder, reserveBytes, clock } = this.#options;
    const { bavail, bsize } = await statfs(folder);
    this.#freeBytes = bavail * bsize;
    this.#spareBytes = this.#freeBytes - reserveBytes;
    this.#measuredAtMs = clock.now().getTime();
  }

  #problem(): string {
    const { reserveBytes } = this.#options;
    return `The disk is full: ${sizeText(this.#freeBytes)} are free, and ${sizeText(reserveBytes)} are kept free for the store`;
  }
}
