import { statfs } from 'node:fs/promises';
import type { Clock } from '../clock/clock.ts';
import { sizeText } from '../text/size-text.ts';

export interface DiskReserveOptions {
  /** Any folder on the disk. */
  readonly folder: string;
  /** How much of the disk stays free. 0: nothing. */
  readonly reserveBytes: number;
  readonly clock: Clock;
}

/** Less than the reserve is free, or would be. */
export class ReserveError extends Error {
  override readonly name = 'ReserveError';
}

/**
 * How long a measurement counts. A disk that takes 2 GB/s, from all processes together, can lose 200 MB in this time: less than
 * the default reserve.
 */
const lookEveryMs = 100;

/** The part of a disk that stays free for the store: what can be refused, such as a push, asks here before it writes. */
export class DiskReserve {
  readonly #options: DiskReserveOptions;
  /** How much may be written until the next measurement. */
  #spareBytes = 0;
  #freeBytes = 0;
  #lookedAtMs = -Infinity;

  constructor(options: DiskReserveOptions) {
    this.#options = options;
  }

  /** How much stays free. */
  get bytes(): number {
    return this.#options.reserveBytes;
  }

  /**
   * Resolves when so many bytes may be written and leave the reserve free; counts them as written. Measures the disk at most every
   * 100 ms while enough is free, so it may be asked before each write. Throws `ReserveError`.
   */
  async require(moreBytes = 0): Promise<void> {
    const ageMs = Math.abs(this.#options.clock.now().getTime() - this.#lookedAtMs);
    if (ageMs >= lookEveryMs || moreBytes > this.#spareBytes) await this.#look();
    if (this.#spareBytes < moreBytes) throw new ReserveError(this.#problem());
    this.#spareBytes -= moreBytes;
  }

  async #look(): Promise<void> {
    const { folder, reserveBytes, clock } = this.#options;
    const { bavail, bsize } = await statfs(folder);
    this.#freeBytes = bavail * bsize;
    this.#spareBytes = this.#freeBytes - reserveBytes;
    this.#lookedAtMs = clock.now().getTime();
  }

  #problem(): string {
    const { reserveBytes } = this.#options;
    return `The disk is full: ${sizeText(this.#freeBytes)} are free, and ${sizeText(reserveBytes)} are kept free for the store`;
  }
}
