import type { FileHandle } from 'node:fs/promises';
import { free } from '../hash/owned-bytes.ts';
import type { ByteTaker } from './blobs.ts';

/** So much must have been written before it is taken: the way to whoever takes it and back is not worth less. */
const minBytes = 256 * 1024;

/** Of large files, more at a time. */
const maxMinBytes = 1024 * 1024;
const minShare = 1 / 4;

/** What is taken at once: others wait for the same thread. */
const maxBytes = 4 * 1024 * 1024;

/** What is taken from a file was written just now and is still in memory; behind by more, it might not be. */
const maxBehindBytes = 64 * 1024 * 1024;

/**
 * Gives a taker what is written to a file: from there, if it can take it, so that the memory of chunks is free as soon as they
 * are written; a copy from the system's cache costs less than handing each chunk to another thread.
 */
export class TakeBehind {
  readonly #file: FileHandle;
  readonly #taker: ByteTaker | undefined;
  /** Up to here. */
  #taken: number;
  #written: number;
  #taking: Promise<void> | undefined;
  #failure: { readonly error: unknown } | undefined;

  constructor(file: FileHandle, position: number, taker: ByteTaker | undefined) {
    this.#file = file;
    this.#taken = position;
    this.#written = position;
    this.#taker = taker;
  }

  /** Chunks were written, up to a position. Resolves when more may be; rejects when the taker failed. */
  async follow(chunks: readonly Uint8Array[], written: number): Promise<void> {
    if (!this.#taker?.takeFile) {
      await this.#taker?.take(chunks);
      return;
    }
    for (const chunk of chunks) free(chunk);
    this.#written = written;
    this.#begin(Math.min(maxMinBytes, Math.max(minBytes, written * minShare)));
    if (written - this.#taken > maxBehindBytes) await this.#taking;
    if (this.#failure) throw this.#failure.error;
  }

  /** Resolves when all that was written is taken. Rejects when the taker failed. */
  async finish(): Promise<void> {
    await this.#taking;
    this.#begin(1);
    await this.#taking;
    if (this.#failure) throw this.#failure.error;
  }

  #begin(atLeastBytes: number): void {
    if (this.#taking || this.#failure || this.#written - this.#taken < atLeastBytes) return;
    this.#taking = this.#take(atLeastBytes).finally(() => (this.#taking = undefined));
  }

  /** Never rejects. */
  async #take(atLeastBytes: number): Promise<void> {
    try {
      while (this.#written - this.#taken >= atLeastBytes) {
        const end = Math.min(this.#written, this.#taken + maxBytes);
        await this.#taker?.takeFile?.(this.#file.fd, { start: this.#taken, end });
        this.#taken = end;
      }
    } catch (error) {
      this.#failure = { error };
    }
  }
}
