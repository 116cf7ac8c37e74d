/** Memory of a chunk, which a thread that hashes can look at. */
export type ChunkBuffer = Buffer<SharedArrayBuffer>;

/** Memory for chunks, used again: each new megabyte costs the kernel as much time as it takes us to fill it. */
export class ChunkBuffers {
  readonly #unused: ChunkBuffer[] = [];

  /** Memory of this size, with anything in it. */
  take(sizeBytes: number): ChunkBuffer {
    const at = this.#unused.findIndex((buffer) => buffer.length === sizeBytes);
    return this.#unused.splice(at, at < 0 ? 0 : 1)[0] ?? Buffer.from(new SharedArrayBuffer(sizeBytes));
  }

  /** Gives memory back that nobody looks at any more. */
  giveBack(buffer: ChunkBuffer): void {
    this.#unused.push(buffer);
  }

  /**
   * Keeps at most so many that nobody uses. The others are left to the garbage collector, which takes its time: shared memory
   * cannot be freed by hand.
   */
  keep(count: number): void {
    this.#unused.length = Math.min(count, this.#unused.length);
  }
}
