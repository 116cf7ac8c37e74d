/**
 * Hashing in threads of its own. A SHA-256 of a layer costs more than receiving and writing it together; beside them it costs
 * no time, and several layers at a time have several cores.
 */
import { availableParallelism } from 'node:os';
import type { Clock } from '../clock/clock.ts';
import { inlineHash } from './hash.ts';
import type { Hash, HashAlgorithm } from './hash.ts';
import { HashThread } from './running-thread.ts';

/** More would wait for the one thread that receives what they hash. */
const maxThreads = Math.min(4, availableParallelism());

/** Of fewer bytes the way to a thread and back takes longer than their hash. */
const minBytes = 256 * 1024;

/** A thread takes some megabytes. One that nobody has needed for this long is not worth them. */
const idleMs = 30_000;

/** The threads of a process, started when they are needed. Disposing ends them; hashes under way fail. */
export class HashThreads implements AsyncDisposable {
  readonly #clock: Clock;
  readonly #threads = new Set<HashThread>();
  readonly #idle: Disposable;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#idle = this.#clock.every(idleMs, () => void this.#endIdle());
  }

  /** How many there are. */
  get count(): number {
    return this.#threads.size;
  }

  /** Begins a hash of so many bytes, or of nobody knows how many. */
  begin(algorithm: HashAlgorithm, sizeBytes?: number): Hash {
    if (sizeBytes !== undefined && sizeBytes < minBytes) return inlineHash(algorithm);
    return this.#leastBusy().begin(algorithm);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#idle[Symbol.dispose]();
    await Promise.all(Array.from(this.#threads, async (thread) => await thread[Symbol.asyncDispose]()));
  }

  #leastBusy(): HashThread {
    const [best] = [...this.#threads].toSorted((a, b) => a.activeHashes - b.activeHashes);
    if (best && (best.activeHashes === 0 || this.#threads.size >= maxThreads)) return best;
    const thread: HashThread = new HashThread(() => this.#threads.delete(thread));
    this.#threads.add(thread);
    return thread;
  }

  /** Those that were idle the last time, too. */
  async #endIdle(): Promise<void> {
    const unused = [...this.#threads].filter((thread) => thread.isUnused());
    // At once: a hash that began while they end would end with them.
    for (const thread of unused) this.#threads.delete(thread);
    await Promise.all(unused.map(async (thread) => await thread[Symbol.asyncDispose]()));
  }
}
