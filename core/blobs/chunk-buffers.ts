import { free } from '../hash/owned-bytes.ts';

/** Memory for chunks, used again: each new megabyte would cost the kernel as much time as filling it costs us. */
export class ChunkBuffers {
  readonly #maxKept: number;
  #kept: Buffer[] = [];

  /** Keeps at most so many that nobody uses. */
  constructor(maxKept: number) {
    this.#maxKept = maxKept;
  }

  /** Memory of this size, with anything in it. */
  take(sizeBytes: number): Buffer {
    const at = this.#kept.findIndex((buffer) => buffer.length === sizeBytes);
    return at < 0 ? Buffer.allocUnsafeSlow(sizeBytes) : (this.#kept.splice(at, 1)[0] as Buffer);
  }

  /** Gives memory back that nobody looks at any more. */
  giveBack(buffer: Buffer): void {
    if (this.#kept.length < this.#maxKept) this.#kept.push(buffer);
    else free(buffer);
  }

  /** Frees what nobody uses. */
  clear(): void {
    for (const buffer of this.#kept) free(buffer);
    this.#kept = [];
  }
}
