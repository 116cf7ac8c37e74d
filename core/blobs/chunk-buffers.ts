/** Memory of a chunk, which a thread that hashes can look at. */
export type ChunkBuffer = Buffer<SharedArrayBuffer>;

/** Memory for chunks, used again: each new megabyte costs the kernel as much time as it takes us to fill it. */
export class ChunkBuffers {
  readonly #maxUnused: number;
  #unused: ChunkBuffer[] = [];

  /** Keeps so many that nobody uses, and leaves others to the garbage collector: shared memory cannot be freed by hand. */
  constructor(maxUnused: number) {
    this.#maxUnused = maxUnused;
  }

  /** Memory of this size, with anything in it. */
  take(sizeBytes: number): ChunkBuffer {
    const at = this.#unused.findIndex((buffer) => buffer.length === sizeBytes);
    return this.#unused.splice(at, at < 0 ? 0 : 1)[0] ?? Buffer.from(new SharedArrayBuffer(sizeBytes));
  }

  /** Gives memory back that nobody looks at any more. */
  giveBack(buffer: ChunkBuffer): void {
    if (this.#unused.length < this.#maxUnused) this.#unused.push(buffer);
  }

  /** Lets go of all that is not in use. */
  clear(): void {
    this.#unused = [];
  }
}
