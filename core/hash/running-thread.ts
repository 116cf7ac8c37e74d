import { Worker } from 'node:worker_threads';
import type { FilePart, Hash, HashAlgorithm, HashAnswer, HashRequest } from './hash.ts';
import { whole } from './owned-bytes.ts';

/** A thread loads one small script, so a few megabytes are enough. */
const resourceLimits = { maxYoungGenerationSizeMb: 2, maxOldGenerationSizeMb: 32 };

/** A thread and its hashes. */
export class HashThread implements AsyncDisposable {
  readonly #worker: Worker;
  readonly #hashes = new Map<number, ThreadHash>();
  #lastId = 0;
  #usedSince = true;
  #end: Error | undefined;

  /** @param onEnd - called when the thread has ended, for any reason */
  constructor(onEnd: () => void) {
    this.#worker = new Worker(new URL('hash-thread.mjs', import.meta.url), {
      execArgv: [],
      resourceLimits,
      name: 'hash',
    });
    // The connection that waits for a hash keeps the process alive.
    this.#worker.unref();
    const end = (error: Error) => {
      this.#end ??= error;
      onEnd();
      for (const hash of this.#hashes.values()) hash.fail(this.#end);
      this.#hashes.clear();
    };
    this.#worker.on('message', (answer: HashAnswer) => this.#hashes.get(answer.hash)?.onAnswer(answer));
    this.#worker.on('error', end);
    this.#worker.on('exit', () => end(new Error('The hash thread has ended')));
  }

  /** How many hashes the thread computes. */
  get hashes(): number {
    return this.#hashes.size;
  }

  /** Whether the thread has had no hash since the last call. */
  isUnused(): boolean {
    const isUnused = this.#hashes.size === 0 && !this.#usedSince;
    this.#usedSince = this.#hashes.size > 0;
    return isUnused;
  }

  begin(algorithm: HashAlgorithm): Hash {
    const id = (this.#lastId += 1);
    const hash = new ThreadHash(id, {
      send: (request, transfer) => this.#worker.postMessage(request, transfer),
      remove: () => this.#hashes.delete(id),
    });
    this.#usedSince = true;
    this.#hashes.set(id, hash);
    if (this.#end) hash.fail(this.#end);
    else this.#worker.postMessage({ kind: 'begin', hash: id, algorithm } satisfies HashRequest, []);
    return hash;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#worker.terminate();
  }
}

interface Thread {
  readonly send: (request: HashRequest, transfer: ArrayBuffer[]) => void;
  readonly remove: () => void;
}

class ThreadHash implements Hash {
  readonly #id: number;
  readonly #thread: Thread;
  /** Requests without an answer, in order. */
  readonly #pending: PromiseWithResolvers<string>[] = [];
  #failure: Error | undefined;
  #isFinished = false;

  constructor(id: number, thread: Thread) {
    this.#id = id;
    this.#thread = thread;
  }

  async update(bytes: Uint8Array): Promise<void> {
    if (bytes.buffer instanceof SharedArrayBuffer) {
      await this.#request({ kind: 'update', hash: this.#id, bytes });
      return;
    }
    const owned = whole(bytes);
    await this.#request({ kind: 'update', hash: this.#id, bytes: owned }, [owned.buffer]);
  }

  async updateFromFile(fd: number, part: FilePart): Promise<void> {
    await this.#request({ kind: 'update-from-file', hash: this.#id, fd, part });
  }

  async digest(): Promise<string> {
    const digest = this.#request({ kind: 'digest', hash: this.#id });
    this.#isFinished = true;
    return await digest.finally(() => this.#thread.remove());
  }

  [Symbol.dispose](): void {
    if (!this.#failure && !this.#isFinished) this.#thread.send({ kind: 'drop', hash: this.#id }, []);
    this.#isFinished = true;
    this.fail(new Error('The hash was disposed'));
    this.#thread.remove();
  }

  onAnswer({ hex, failure }: HashAnswer): void {
    const pending = this.#pending.shift();
    if (failure === undefined) pending?.resolve(hex);
    else {
      const error = new Error(`Cannot hash: ${failure}`);
      pending?.reject(error);
      this.fail(error);
    }
  }

  /** Rejects pending and later requests. */
  fail(error: Error): void {
    this.#failure ??= error;
    for (const { reject } of this.#pending.splice(0)) reject(error);
  }

  async #request(request: HashRequest, transfer: ArrayBuffer[] = []): Promise<string> {
    if (this.#failure) throw this.#failure;
    const pending = Promise.withResolvers<string>();
    this.#pending.push(pending);
    this.#thread.send(request, transfer);
    return await pending.promise;
  }
}
