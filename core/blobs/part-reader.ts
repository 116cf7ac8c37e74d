import { readSync } from 'node:fs';
import type { FileHandle } from 'node:fs/promises';
import type { Pace } from '../pace/pace.ts';
import { fileErrors } from './file-errors.ts';

/** A part in the page cache takes a tenth of a millisecond, a seek of a disk five. */
const slowMs = 2;

/** So many parts are read ahead after the first that came from a disk, and twice as many after each further time. */
const firstRetreat = 8;

/** What a reader needs of its surroundings; tests have a disk and a clock in hand. */
interface Surroundings {
  readonly pace: Pace;
  /** Reads on this thread, and returns how many bytes. Default: from the file. */
  readonly readNow?: (fd: number, buffer: Buffer, length: number, at: number) => number;
  /** How often disks were read so far, by any thread of this process. Default: as the system counts it. */
  readonly diskReads?: () => number;
  /** Default: `performance.now`. */
  readonly nowMs?: () => number;
}

/** Where in a file a part is. */
interface Part {
  readonly at: number;
  readonly length: number;
}

/**
 * Reads a file in parts, to be sent one after the other. What the page cache has is read on this thread, after the part before
 * was sent: to have another thread do it takes longer than the reading, and was a third of the CPU time of a pull. But while a
 * disk seeks, this thread would serve nobody. So the first part is always left to another thread, and so is what follows a part
 * that was slow, for as long as disks are being read. Such parts are read ahead, beside the sending.
 */
export class PartReader {
  readonly #file: FileHandle;
  readonly #pace: Pace;
  readonly #readNow: Required<Surroundings>['readNow'];
  readonly #diskReads: Required<Surroundings>['diskReads'];
  readonly #nowMs: Required<Surroundings>['nowMs'];
  /** How many parts are still to be read ahead, and how often disks had been read before the first of them. */
  #ahead = 1;
  #diskReadsBefore: number;
  #retreat = firstRetreat;

  constructor(
    file: FileHandle,
    { pace, readNow = fromCache, diskReads = fromDisks, nowMs = () => performance.now() }: Surroundings,
  ) {
    this.#file = file;
    this.#pace = pace;
    this.#readNow = readNow;
    this.#diskReads = diskReads;
    this.#diskReadsBefore = diskReads();
    this.#nowMs = nowMs;
  }

  /** Whether the next part is read while the one before is still being sent, and needs a buffer of its own. */
  get readsAhead(): boolean {
    return this.#ahead > 0;
  }

  /**
   * Reads the next part into the start of a buffer, and resolves with how many bytes it has, after the part before is `sent`.
   *
   * @throws `BlobsError` `unavailable` where the file cannot be read; what `sent` rejects with
   */
  async read(buffer: Buffer, part: Part, sent: Promise<void>): Promise<number> {
    return this.readsAhead ? await this.#readAhead(buffer, part, sent) : await this.#readCached(buffer, part, sent);
  }

  async #readAhead(buffer: Buffer, { at, length }: Part, sent: Promise<void>): Promise<number> {
    this.#ahead -= 1;
    const reading = fileErrors(async () => await this.#file.read(buffer, 0, length, at));
    const [{ bytesRead }] = await Promise.all([reading, sent]);
    if (!this.readsAhead && this.#diskReads() > this.#diskReadsBefore) this.#retreatFromDisk();
    return bytesRead;
  }

  async #readCached(buffer: Buffer, { at, length }: Part, sent: Promise<void>): Promise<number> {
    await sent;
    await this.#pace.step();
    const startedMs = this.#nowMs();
    const bytesRead = await fileErrors(async () => this.#readNow(this.#file.fd, buffer, length, at));
    if (this.#nowMs() - startedMs > slowMs) this.#retreatFromDisk();
    return bytesRead;
  }

  #retreatFromDisk(): void {
    this.#diskReadsBefore = this.#diskReads();
    this.#ahead = this.#retreat;
    this.#retreat *= 2;
  }
}

function fromCache(fd: number, buffer: Buffer, length: number, at: number): number {
  return readSync(fd, buffer, 0, length, at);
}

function fromDisks(): number {
  return process.resourceUsage().fsRead;
}
