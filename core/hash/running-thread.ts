import { Worker } from 'node:worker_threads';
import type { FilePart, Hash, HashAlgorithm } from './hash.ts';
import type { HashAnswer, HashRequest } from './hash-messages.ts';
import { whole } from './owned-bytes.ts';

/** As much is sent at a time: most of a millisecond's work, many times what a message costs. */
const messageBytes = 256 * 1024;

/** Bytes that come in crumbs are sent before, so that their number stays bounded too. */
const messageParts = 64;

/** One is hashed while the next one is on its way. */
const messagesAhead = 2;

/** What it holds between two chunks: no scripts but its own, so that an isolate of a few megabytes will do. */
const resourceLimits = { maxYoungGenerationSizeMb: 2, maxOldGenerationSizeMb: 32 };

/** A thread, and the hashes that it has. */
export class HashThread implements AsyncDisposable {
  readonly #worker: Worker;
  readonly #hashes = new Map<number, ThreadHash>();
  #lastId = 0;
  #usedSince = true;
  #end: Error | undefined;

  /** `onEnd` is called when it is gone, by itself too. */
  constructor(onEnd: () => void) {
    this.#worker = new Worker(new URL('hash-thread.mjs', import.meta.url), {
      execArgv: [],
      resourceLimits,
      name: 'hash',
    });
    // Whoever waits for a hash has something else that holds the process.
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

  /** How many hashes are being fed. */
  get activeHashes(): number {
    let active = 0;
    for (const hash of this.#hashes.values()) if (hash.isActive) active += 1;
    return active;
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
  readonly send: (request: HashRequest, handOver?: ArrayBuffer[]) => void;
  readonly forget: () => void;
}

class ThreadHash implements Hash {
  /** Whether it is being fed. */
  isActive = true;
  readonly #id: number;
  readonly #thread: Thread;
  readonly #digest = Promise.withResolvers<string>();
  #parts: Uint8Array<ArrayBuffer>[] = [];
  #partsBytes = 0;
  #underWay = 0;
  #room: PromiseWithResolvers<void> | undefined;
  #failure: Error | undefined;
  #isAsked = false;

  constructor(id: number, thread: Thread) {
    this.#id = id;
    this.#thread = thread;
    // Told to whoever asks for the digest, if anybody does.
    this.#digest.promise.catch(() => {});
  }

  async take(chunks: readonly Uint8Array[]): Promise<void> {
    this.isActive = true;
    for (const chunk of chunks) {
      if (this.#failure) throw this.#failure;
      this.#parts.push(whole(chunk));
      this.#partsBytes += chunk.byteLength;
      if (this.#partsBytes < messageBytes && this.#parts.length < messageParts) continue;
      this.#send();
      if (this.#underWay < messagesAhead) continue;
      this.#room = Promise.withResolvers();
      await this.#room.promise;
    }
  }

  async takeFile(fd: number, part: FilePart): Promise<void> {
    await this.#lend({ kind: 'update-from-file', hash: this.#id, fd, part });
  }

  async takeShared(bytes: Uint8Array<SharedArrayBuffer>): Promise<void> {
    await this.#lend({ kind: 'update-shared', hash: this.#id, bytes });
  }

  /** Resolves when the thread does not look at it any more. */
  async #lend(request: HashRequest): Promise<void> {
    this.isActive = true;
    if (this.#failure) throw this.#failure;
    this.#send();
    this.#underWay += 1;
    this.#thread.send(request);
    while (this.#underWay > 0) {
      this.#room = Promise.withResolvers();
      await this.#room.promise;
    }
  }

  rest(): void {
    this.isActive = false;
    this.#send();
  }

  async digest(): Promise<string> {
    if (this.#failure) throw this.#failure;
    this.#send();
    this.#isAsked = true;
    this.#thread.send({ kind: 'digest', hash: this.#id });
    return await this.#digest.promise;
  }

  [Symbol.dispose](): void {
    this.#parts = [];
    if (!this.#failure && !this.#isAsked) this.#thread.send({ kind: 'drop', hash: this.#id });
    this.fail(new Error('The hash was given up'));
    this.#thread.forget();
  }

  onAnswer(answer: HashAnswer): void {
    if (answer.kind === 'digest') {
      this.#digest.resolve(answer.hex);
      this.#thread.forget();
      return;
    }
    if (answer.kind === 'failed') {
      this.fail(new Error(`Cannot hash: ${answer.message}`));
      return;
    }
    this.#underWay -= 1;
    this.#room?.resolve();
    this.#room = undefined;
  }

  fail(error: Error): void {
    this.#failure ??= error;
    this.#room?.reject(error);
    this.#digest.reject(error);
  }

  #send(): void {
    const parts = this.#parts;
    if (parts.length === 0) return;
    this.#parts = [];
    this.#partsBytes = 0;
    this.#underWay += 1;
    const request = { kind: 'update', hash: this.#id, parts } as const;
    this.#thread.send(
      request,
      parts.map(({ buffer }) => buffer),
    );
  }
}
