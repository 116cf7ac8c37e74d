/** A handle of the main thread for a thread with a proxy. */
import { Worker } from 'node:worker_threads';
import { TimeoutError, withTimeout } from '../../core/async/with-timeout.ts';
import type { Clock } from '../../core/clock/clock.ts';
import { ConfigError } from '../../core/config/settings.ts';
import type { ThreadAnswers, ThreadData, ThreadMessage, ThreadRequest } from './messages.ts';
import { threadHeap } from '../process/heap.ts';

/** A thread that does not answer for this long counts as blocked. */
const answerLimitMs = 5_000;

/** A thread that runs until it is disposed or crashes. */
export class RunningThread implements AsyncDisposable {
  readonly #worker: Worker;
  readonly #clock: Clock;
  readonly #opened = Promise.withResolvers<string>();
  readonly #exited = Promise.withResolvers<Error>();
  readonly #pending = new Map<number, PromiseWithResolvers<unknown>>();
  #lastId = 0;
  #problem: Error | undefined;
  #end: Error | undefined;
  #closing: Promise<void> | undefined;

  constructor(data: ThreadData, clock: Clock) {
    this.#clock = clock;
    this.#worker = new Worker(new URL('proxy-thread.ts', import.meta.url), {
      workerData: data,
      transferList: [data.share.store?.port, data.share.bus].filter((port) => port !== undefined),
      name: data.name,
      // A thread accepts only some options of its process (a test runner sets others), and needs none.
      execArgv: [],
      resourceLimits: threadHeap(),
    });
    this.#worker.on('message', (message: ThreadMessage) => this.#onMessage(message));
    this.#worker.on('error', (error) => (this.#problem = toError(error)));
    this.#worker.on('exit', () => this.#onExit());
    this.#opened.promise.catch(() => {});
  }

  /** The thread's address. Rejects with a `ConfigError` if the user can correct the cause, otherwise with the error that ended the thread. */
  get hostPort(): Promise<string> {
    return this.#opened.promise;
  }

  /** Resolves when the thread has ended, with the reason. */
  get ended(): Promise<Error> {
    return this.#exited.promise;
  }

  /** Rejects if the thread fails, has ended, or does not answer in time. */
  async ask<Kind extends keyof ThreadAnswers>(
    kind: Kind,
    more: Pick<ThreadRequest, 'certificates'> = {},
  ): Promise<ThreadAnswers[Kind]> {
    const limit = { clock: this.#clock, ms: answerLimitMs, message: 'The thread of the proxy does not answer' };
    return await withTimeout(limit, async () => await this.#request(kind, more));
  }

  /** Lets the proxy finish its requests. Terminates a thread that stops answering. */
  [Symbol.asyncDispose](): Promise<void> {
    return (this.#closing ??= this.#close());
  }

  async #close(): Promise<void> {
    const terminate = () => void this.#worker.terminate();
    const terminateIfSilent = (error: unknown) => void (error instanceof TimeoutError && terminate());
    const watch = this.#clock.every(answerLimitMs, () => void this.ask('echo').catch(terminateIfSilent));
    try {
      const isOpen = await this.hostPort.then(
        () => true,
        () => false,
      );
      if (isOpen && !this.#end) await this.#request('close');
    } finally {
      watch[Symbol.dispose]();
      terminate();
      await this.#exited.promise;
    }
  }

  async #request<Kind extends keyof ThreadAnswers>(
    kind: Kind,
    more: Pick<ThreadRequest, 'certificates'> = {},
  ): Promise<ThreadAnswers[Kind]> {
    if (this.#end) throw this.#end;
    const id = (this.#lastId += 1);
    const pending = Promise.withResolvers<unknown>();
    this.#pending.set(id, pending);
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread, not a window
    this.#worker.postMessage({ id, kind, ...more } satisfies ThreadRequest);
    return (await pending.promise) as ThreadAnswers[Kind];
  }

  #onExit(): void {
    this.#end = this.#problem ?? new Error('The thread of the proxy has ended');
    this.#opened.reject(this.#end);
    for (const { reject } of this.#pending.values()) reject(this.#end);
    this.#pending.clear();
    this.#exited.resolve(this.#end);
  }

  #onMessage(message: ThreadMessage): void {
    if (message.kind === 'opened') this.#opened.resolve(message.hostPort);
    else if (message.kind === 'refused') this.#problem = new ConfigError(message.message);
    else {
      const pending = this.#pending.get(message.id);
      this.#pending.delete(message.id);
      if (message.kind === 'answer') pending?.resolve(message.value);
      else pending?.reject(new Error(message.message));
    }
  }
}

function toError(error: unknown): Error {
  return error instanceof Error ? error : new Error(String(error));
}
