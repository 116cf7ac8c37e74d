import { Worker } from 'node:worker_threads';
import type { FilePart, Hash, HashAlgorithm, HashAnswer, HashRequest } from './hash.ts';
import { whole } from './owned-bytes.ts';

/** A thread loads no scripts but its own, so that an isolate of a few megabytes will do. */
const resourceLimits = { maxYoungGenerationSizeMb: 2, maxOldGenerationSizeMb: 32 };

/** A thread, and the hashes that it has. */
export class HashThread implements AsyncDisposable {
  readonly #worker: Worker;
  readonly #hashes = new Map<number, ThreadHash>();
  #lastId = 0;
  #usedSince = true;
  #end: Error | undefined;

  /** `onEnd` is called when the thread has ended, by itself too. */
  constructor(onEnd: () => void) {
    this.#worker = new Worker(new URL('hash-thread.mjs', import.meta.url), {
      execArgv: [],
      resourceLimits,
      name: 'hash',
    });
    // Whatever waits for a hash holds the process by something else.
    this.#worker.unref();
    const end = (error: Error) => {
      this.#end ??= error;
      onEnd();
      for (const hash of this.#hashes.values()) hash.fail(this.#end);
      this.#hashes.clear();
    };
    this.#worker.on('message', (answer: HashAnswer) => this.#hashes.get(answer.hash)?.onAnswer(answer));
    this.#worker.on('error', end);
    this.#worker.on('exit', () => end(new Error('The thread that hashes has ended')));
  }

  /** How many hashes it has. */
  get hashes(): number {
    return this.#hashes.size;
  }

  /** Whether it has no hash, and had none since this was asked the last time. */
  isUnused(): boolean {
    const isUnused = this.#hashes.size === 0 && !this.#usedSince;
    this.#usedSince = this.#hashes.size > 0;
    return isUnused;
  }

  begin(algorithm: HashAlgorithm): Hash {
    const id = (this.#lastId += 1);
    const hash = new ThreadHash(id, {
      send: (request, handOver) => this.#worker.postMessage(request, handOver),
      forget: () => this.#hashes.delete(id),
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
  readonly send: (request: HashRequest, handOver: ArrayBuffer[]) => void;
  readonly forget: () => void;
}

class ThreadHash implements Hash {
  readonly #id: number;
  readonly #thread: Thread;
  /** Requests that were not answered yet, in their order. */
  readonly #asked: PromiseWithResolvers<string>[] = [];
  #failure: Error | undefined;
  #isOver = false;

  constructor(id: number, thread: Thread) {
    this.#id = id;
    this.#thread = thread;
  }

  async update(bytes: Uint8Array): Promise<void> {
    if (bytes.buffer instanceof SharedArrayBuffer) {
      await this.#ask({ kind: 'update', hash: this.#id, bytes });
      return;
    }
    const owned = whole(bytes);
    await this.#ask({ kind: 'update', hash: this.#id, bytes: owned }, [owned.buffer]);
  }

  async updateFromFile(fd: number, part: FilePart): Promise<void> {
    await this.#ask({ kind: 'update-from-file', hash: this.#id, fd, part });
  }

  async digest(): Promise<string> {
    const asked = this.#ask({ kind: 'digest', hash: this.#id });
    this.#isOver = true;
    return await asked.finally(() => this.#thread.forget());
  }

  [Symbol.dispose](): void {
    if (!this.#failure && !this.#isOver) this.#thread.send({ kind: 'drop', hash: this.#id }, []);
    this.#isOver = true;
    this.fail(new Error('The hash was given up'));
    this.#thread.forget();
  }

  onAnswer({ hex, failure }: HashAnswer): void {
    const asked = this.#asked.shift();
    if (failure === undefined) asked?.resolve(hex);
    else {
      const error = new Error(`Cannot hash: ${failure}`);
      asked?.reject(error);
      this.fail(error);
    }
  }

  /** Rejects what was asked, and what will be. */
  fail(error: Error): void {
    this.#failure ??= error;
    for (const asked of this.#asked.splice(0)) asked.reject(error);
  }

  async #ask(request: HashRequest, handOver: ArrayBuffer[] = []): Promise<string> {
    if (this.#failure) throw this.#failure;
    const asked = Promise.withResolvers<string>();
    this.#asked.push(asked);
    this.#thread.send(request, handOver);
    return await asked.promise;
  }
}
