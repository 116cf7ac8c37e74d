import { once } from 'node:events';
import { MessageChannel, Worker } from 'node:worker_threads';
import type { MessagePort } from 'node:worker_threads';
import type { Log } from '../../log/log.ts';
import { StoreError } from '../store.ts';

interface PendingWrite {
  readonly write: Write;
  readonly resolve: (happened: boolean) => void;
  readonly reject: (error: Error) => void;
}

/** The thread loads two small scripts. Its long-lived data is outside its heap. */
const resourceLimits = { maxYoungGenerationSizeMb: 4 };

/** Starts the writer thread. Throws `StoreError` `unavailable` if it cannot open the database. */
export async function openSqliteWriter(data: ThreadData, log: Log): Promise<SqliteWriter> {
  const thread = new Worker(new URL('writer-thread.mjs', import.meta.url), {
    workerData: data,
    name: 'store-writer',
    // A thread does not accept all options of its process (for example those of a test runner), and needs none.
    execArgv: [],
    resourceLimits,
  });
  const [answer] = (await once(thread, 'message')) as [ThreadAnswer];
  if (answer.kind === 'opened') return new SqliteWriter(thread, log);
  await thread.terminate();
  const { message, isFull } = answer.kind === 'failed' ? answer : unexpectedAnswer;
  const why = isFull ? 'The disk is full' : message;
  throw new StoreError('unavailable', `Cannot open the database "${data.file}": ${why}`, { isFull });
}

const unexpectedAnswer = { message: 'The writer thread sent an unexpected answer', isFull: false };

/** Connects another thread of this process to the writer thread, with a port from `connect`. */
export function connectSqliteWriter(port: MessagePort, log: Log): SqliteWriter {
  return new SqliteWriter(port, log);
}

/** The writes of a thread. Writes that arrive during a commit share the next one. */
export class SqliteWriter implements AsyncDisposable {
  /** The writer thread, or a port to it. */
  readonly #thread: Worker | MessagePort;
  readonly #log: Log;
  readonly #exited: Promise<void>;
  #waiting: PendingWrite[] = [];
  #committing: PendingWrite[] = [];
  /** The error of the last commit. */
  #problem: StoreError | undefined;
  /** Why no more writes are possible. */
  #end: StoreError | undefined;

  constructor(thread: Worker | MessagePort, log: Log) {
    this.#thread = thread;
    this.#log = log;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#exited = promise;
    thread.on('message', (answer: ThreadAnswer) => this.#onAnswer(answer));
    const onExit = () => {
      if (!this.#end) this.#onCrash(new Error('The thread exited'));
      resolve();
    };
    if (thread instanceof Worker) thread.on('error', (error) => this.#onCrash(error)).on('exit', onExit);
    else thread.on('close', onExit);
  }

  /** Creates a port for another thread of this process. The writer thread closes it at the latest when this writer is disposed. */
  connect(): MessagePort {
    const { port1, port2 } = new MessageChannel();
    this.#send({ kind: 'connect', port: port1 }, [port1]);
    return port2;
  }

  /** Resolves when the write is durable, with whether it happened. Rejects with `unavailable` if nothing was written. */
  async write(write: Write): Promise<boolean> {
    if (this.#end) throw this.#end;
    const { promise, resolve, reject } = Promise.withResolvers<boolean>();
    this.#waiting.push({ write, resolve, reject });
    if (this.#waiting.length === 1 && this.#committing.length === 0) queueMicrotask(() => this.#commit());
    return await promise;
  }

  /** Throws as a write would. If the last commit failed, tries another one. */
  async ping(): Promise<void> {
    if (this.#end) throw this.#end;
    if (this.#problem) await this.write({ kind: 'probe' });
  }

  /** Commits the waiting writes, then ends the thread. */
  async [Symbol.asyncDispose](): Promise<void> {
    if (!this.#end) {
      this.#commit();
      this.#end = new StoreError('unavailable', 'The store is closed');
      if (this.#committing.length === 0) this.#send({ kind: 'close' });
    }
    await this.#exited;
  }

  #commit(): void {
    if (this.#waiting.length === 0 || this.#committing.length > 0) return;
    this.#committing = this.#waiting;
    this.#waiting = [];
    this.#send({ kind: 'write', writes: this.#committing.map(({ write }) => write) });
  }

  #onAnswer(answer: ThreadAnswer): void {
    const answered = this.#committing;
    this.#committing = [];
    this.#commit();
    if (this.#end && this.#committing.length === 0) this.#send({ kind: 'close' });
    if (answer.kind === 'written') {
      this.#problem = undefined;
      for (const [i, { resolve }] of answered.entries()) resolve(answer.happened[i] === true);
    } else {
      const { message: why, isFull } = answer.kind === 'failed' ? answer : unexpectedAnswer;
      this.#log.error({ why, writes: answered.length }, 'The store cannot write');
      const message = isFull ? 'The disk is full, the store cannot write' : `The store cannot write: ${why}`;
      this.#problem = new StoreError('unavailable', message, { isFull });
      rejectAll(answered, this.#problem);
    }
  }

  #onCrash(cause: unknown): void {
    this.#log.fatal({ err: cause }, "The store's writer thread has crashed");
    this.#end = new StoreError('unavailable', "The store's writer thread has crashed, restart the process", { cause });
    rejectAll([...this.#committing, ...this.#waiting], this.#end);
    this.#committing = [];
    this.#waiting = [];
  }

  #send(request: ThreadRequest, transfer: readonly MessagePort[] = []): void {
    this.#thread.postMessage(request, transfer);
  }
}

function rejectAll(writes: readonly PendingWrite[], error: Error): void {
  for (const { reject } of writes) reject(error);
}

/** One write. `replace` and `remove` happen only if the document has this version, `insert` only if the ID is free. */
export type Write =
  | { readonly kind: 'insert'; readonly table: string; readonly id: string; readonly document: string }
  | {
      readonly kind: 'replace';
      readonly table: string;
      readonly id: string;
      readonly version: number;
      readonly document: string;
    }
  | { readonly kind: 'remove'; readonly table: string; readonly id: string; readonly version: number }
  /** Changes nothing, but fails if the database cannot be written. */
  | { readonly kind: 'probe' };

/** The data with which the thread is started. */
export interface ThreadData {
  readonly file: string;
  /** Statements that create the tables. */
  readonly tables: readonly string[];
  /** For each table, the statements that create its indexes, by index name. */
  readonly indexes: ReadonlyMap<string, ReadonlyMap<string, string>>;
}

/**
 * A request to the writer thread. `write`: the writes of one transaction. `connect`: accept requests from another port, too. `close`:
 * close the sender's port, and end the writer thread if the sender started it.
 */
export type ThreadRequest =
  | { readonly kind: 'write'; readonly writes: readonly Write[] }
  | { readonly kind: 'connect'; readonly port: MessagePort }
  | { readonly kind: 'close' };

/** The thread's answers, in the order of the requests. `failed`: nothing was written, or the database could not be opened. */
export type ThreadAnswer =
  | { readonly kind: 'opened' }
  | { readonly kind: 'written'; readonly happened: readonly boolean[] }
  | { readonly kind: 'failed'; readonly message: string; readonly isFull: boolean };
