/**
 * Hashing on threads. The SHA-256 of a layer costs more CPU time than receiving and writing it. On threads it runs concurrently, and
 * several layers use several cores.
 */
import { availableParallelism } from 'node:os';
import type { Clock } from '../clock/clock.ts';
import type { Hash, HashAlgorithm } from './hash.ts';
import { HashThread } from './running-thread.ts';

/** More threads would wait for the main thread, which receives the bytes. */
const maxThreads = Math.min(4, availableParallelism());

/** An unused thread ends after one to two of these periods: it takes some megabytes, and 20 ms to start. */
const idleMs = 5000;

/** The hash threads of a process, started on demand. Disposing ends them; their hashes fail. */
export class HashThreads implements AsyncDisposable {
  readonly #threads = new Set<HashThread>();
  readonly #clock: Clock;
  /** Ends idle threads, while there are threads. */
  #idleCheck: Disposable | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** How many threads are running. */
  get count(): number {
    return this.#threads.size;
  }

  begin(algorithm: HashAlgorithm): Hash {
    return this.#leastBusy().begin(algorithm);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stopIdleCheck();
    await Promise.all(Array.from(this.#threads, async (thread) => await thread[Symbol.asyncDispose]()));
  }

  #leastBusy(): HashThread {
    const [best] = [...this.#threads].toSorted((a, b) => a.hashes - b.hashes);
    if (best && (best.hashes === 0 || this.#threads.size >= maxThreads)) return best;
    const thread: HashThread = new HashThread(() => this.#threads.delete(thread));
    this.#threads.add(thread);
    this.#idleCheck ??= this.#clock.every(idleMs, () => void this.#endIdle());
    return thread;
  }

  /** Ends threads that were also unused at the previous call. */
  async #endIdle(): Promise<void> {
    const unused = [...this.#threads].filter((thread) => thread.isUnused());
    // Removed at once, so that no new hash starts on a thread that ends.
    for (const thread of unused) this.#threads.delete(thread);
    if (this.#threads.size === 0) this.#stopIdleCheck();
    await Promise.all(unused.map(async (thread) => await thread[Symbol.asyncDispose]()));
  }

  #stopIdleCheck(): void {
    this.#idleCheck?.[Symbol.dispose]();
    this.#idleCheck = undefined;
  }
}
