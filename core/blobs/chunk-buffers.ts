/** Memory of a chunk, which a thread that hashes can look at. */
export type ChunkBuffer = Buffer<SharedArrayBuffer>;

/** Memory for chunks, used again: each new megabyte costs the kernel as much time as it takes us to fill it. */
export class ChunkBuffers {
  #unused: ChunkBuffer[] = [];

  /** Memory of this size, with anything in it. */
  take(sizeBytes: number): ChunkBuffer {
    const at = this.#unused.findIndex((buffer) => buffer.length === sizeBytes);
    return this.#unused.splice(at, at < 0 ? 0 : 1)[0] ?? Buffer.from(new SharedArrayBuffer(sizeBytes));
  }

  /** Gives memory back that nobody looks at any more. */
  giveBack(buffer: ChunkBuffer): void {
    this.#unused.push(buffer);
  }

  /** Lets go of all that is not in use. */
  clear(): void {
    this.#unused = [];
  }
}
