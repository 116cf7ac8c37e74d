/** Buffers of one size, with limits for the used ones and for the unused ones that are kept. */
interface Tier {
  readonly bufferBytes: number;
  readonly maxUsed: number;
  readonly maxKept: number;
}

/**
 * A few readers are fastest with large buffers. Each has two: one is sent while the next is read. With many readers, large
 * buffers evict each other from the CPU cache between the disk and the socket. An attacker can keep thousands of readers open that
 * never read.
 */
const tiers: readonly Tier[] = [
  { bufferBytes: 1024 * 1024, maxUsed: 16, maxKept: 16 },
  { bufferBytes: 256 * 1024, maxUsed: 64, maxKept: 16 },
  { bufferBytes: 64 * 1024, maxUsed: Number.POSITIVE_INFINITY, maxKept: 0 },
];

/** A pool of buffers for reading files. New buffers for each read would cost more in garbage collection than the disk costs. */
export class ReadBuffers {
  readonly #tiers = tiers.map((tier) => ({ ...tier, used: 0, kept: [] as Buffer[] }));

  /** A buffer, which the caller releases or discards. */
  acquire(): Buffer {
    const tier = this.#tiers.find(({ used, maxUsed }) => used < maxUsed);
    if (!tier) throw new Error('The last tier is unlimited');
    tier.used += 1;
    return tier.kept.pop() ?? Buffer.allocUnsafeSlow(tier.bufferBytes);
  }

  /** Returns a buffer that is no longer read from. */
  release(buffer: Buffer): void {
    const tier = this.#end(buffer);
    if (tier && tier.kept.length < tier.maxKept) tier.kept.push(buffer);
  }

  /** Drops a buffer that may still be read from. */
  discard(buffer: Buffer): void {
    this.#end(buffer);
  }

  #end({ length }: Buffer) {
    const tier = this.#tiers.find(({ bufferBytes }) => bufferBytes === length);
    if (tier) tier.used -= 1;
    return tier;
  }
}
