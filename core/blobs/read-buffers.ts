/** Buffers of one size: so many are in use at a time, and so many wait for the next reader. */
interface Tier {
  readonly bufferBytes: number;
  readonly maxUsed: number;
  readonly maxKept: number;
}

/**
 * A few readers are fastest with large parts: fewer turns. Each has two, one that is sent and one that is read ahead. Where many
 * read at a time, large parts push each other out of the processor's cache between the disk and the socket. And thousands of
 * readers may stand still, if they mean harm.
 */
const tiers: readonly Tier[] = [
  { bufferBytes: 1024 * 1024, maxUsed: 16, maxKept: 16 },
  { bufferBytes: 256 * 1024, maxUsed: 64, maxKept: 16 },
  { bufferBytes: 64 * 1024, maxUsed: Number.POSITIVE_INFINITY, maxKept: 0 },
];

/** What files are read into. A new buffer for each part would keep the garbage collector busier than the disk. */
export class ReadBuffers {
  readonly #tiers = tiers.map((tier) => ({ ...tier, used: 0, kept: [] as Buffer[] }));

  /** One that the caller gives back, in the end, or else lets go. */
  take(): Buffer {
    const tier = this.#tiers.find(({ used, maxUsed }) => used < maxUsed);
    if (!tier) throw new Error('The last tier has no end');
    tier.used += 1;
    return tier.kept.pop() ?? Buffer.allocUnsafeSlow(tier.bufferBytes);
  }

  /** Only what nothing reads from any more. */
  giveBack(buffer: Buffer): void {
    const tier = this.#end(buffer);
    if (tier && tier.kept.length < tier.maxKept) tier.kept.push(buffer);
  }

  /** What may still be on its way somewhere. */
  letGo(buffer: Buffer): void {
    this.#end(buffer);
  }

  #end({ length }: Buffer) {
    const tier = this.#tiers.find(({ bufferBytes }) => bufferBytes === length);
    if (tier) tier.used -= 1;
    return tier;
  }
}
