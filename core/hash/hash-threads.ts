/**
 * Hashing in threads of its own. A SHA-256 of a layer costs more than receiving and writing it together; beside them it costs
 * no time, and several layers at a time have several cores.
 */
import { availableParallelism } from 'node:os';
import type { Clock } from '../clock/clock.ts';
import type { Hash, HashAlgorithm } from './hash.ts';
import { HashThread } from './running-thread.ts';

/** More would wait for the one thread that receives what they hash. */
const maxThreads = Math.min(4, availableParallelism());

/** A thread takes some megabytes. One that was unused for this long is not worth them. */
const idleMs = 30_000;

/** The threads of a process, started when they are needed. Disposing ends them; hashes under way fail. */
export class HashThreads implements AsyncDisposable {
  readonly #threads = new Set<HashThread>();
  readonly #idle: Disposable;

  constructor(clock: Clock) {
    this.#idle = clock.every(idleMs, () => void this.#endIdle());
  }

  /** How many there are. */
  get count(): number {
    return this.#threads.size;
  }

  begin(algorithm: HashAlgorithm): Hash {
    return this.#leastBusy().begin(algorithm);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#idle[Symbol.dispose]();
    await Promise.all(Array.from(this.#threads, async (thread) => await thread[Symbol.asyncDispose]()));
  }

  #leastBusy(): HashThread {
    const [best] = [...this.#threads].toSorted((a, b) => a.hashes - b.hashes);
    if (best && (best.hashes === 0 || this.#threads.size >= maxThreads)) return best;
    const thread: HashThread = new HashThread(() => this.#threads.delete(thread));
    this.#threads.add(thread);
    return thread;
  }

  /** Ends threads that were unused the last time, too. */
  async #endIdle(): Promise<void> {
    const unused = [...this.#threads].filter((thread) => thread.isUnused());
    // At once: a hash that began while they end would end with them.
    for (const thread of unused) this.#threads.delete(thread);
    await Promise.all(unused.map(async (thread) => await thread[Symbol.asyncDispose]()));
  }
}
