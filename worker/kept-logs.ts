import { createReadStream } from 'node:fs';
import { readdir, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { logRecord } from '../contract/node-streams.ts';
import type { LogRecord } from '../contract/node-streams.ts';
import type { Clock } from '../core/clock/clock.ts';
import { makeDurableFolder } from '../core/files/durable-folder.ts';
import { ifPresent, systemCode } from '../core/files/system-code.ts';
import { writeDurably } from '../core/files/write-durably.ts';
import { lineBatchesOf } from '../core/lines/lines.ts';
import type { Log } from '../core/log/log.ts';
import type { KeptLogSettings } from './settings.ts';
import { Slots } from './slots.ts';

/** Each holds its log in memory. When many backends end at once, the others wait a moment. */
const maxAtATime = 8;

/** Keeping logs for an hour too long harms nobody. */
const sweepEveryMs = 60 * 60 * 1000;

/**
 * Logs of backends that have ended, a file each:
 *
 *     <folder>/<backend>        lines of JSON, the last ones of the log
 *     <folder>/<backend>.draft  one that is being written, or was when the worker was killed
 *
 * A draft is written anew as long as there is the container, and swept like all others when there is none.
 */
export class KeptLogs {
  readonly #settings: KeptLogSettings;
  readonly #slots = new Slots(maxAtATime);

  constructor(settings: KeptLogSettings) {
    this.#settings = settings;
  }

  /** Keeps the end of a log, so that it is there after a power cut. Does nothing if it is kept already, or empty. */
  async keep(backend: string, read: () => AsyncIterable<LogRecord[]>, signal: AbortSignal): Promise<void> {
    using _slot = await this.#slots.take(signal);
    if (await isThere(this.#file(backend))) return;
    const tail = new Tail(this.#settings.maxBytes);
    for await (const records of read()) for (const record of records) tail.add(`${JSON.stringify(record)}\n`);
    if (tail.isEmpty) return;
    await makeDurableFolder(this.#settings.folder);
    await writeDurably(this.#file(backend), tail.text, `${this.#file(backend)}.draft`);
  }

  /** What is kept of a log from a place on; `undefined` if nothing is. */
  async read(backend: string, after: string | undefined): Promise<AsyncGenerator<LogRecord[], void, void> | undefined> {
    const file = this.#file(backend);
    return (await isThere(file)) ? readFrom(file, after) : undefined;
  }

  /** Takes away, now and then, what has been kept for long enough. Goes on until disposed. */
  beginSweeping({ clock, log }: { clock: Clock; log: Log }): Disposable {
    const sweep = () => {
      this.sweep(clock.now()).catch((error: unknown) => log.warn({ err: error }, 'Kept logs cannot be swept'));
    };
    sweep();
    return clock.every(sweepEveryMs, sweep);
  }

  /** Takes away what has been kept for long enough. */
  async sweep(now: Date): Promise<void> {
    const { folder, seconds } = this.#settings;
    for (const name of (await ifPresent(readdir(folder))) ?? []) {
      const file = join(folder, name);
      const writtenAt = (await stat(file).catch(() => undefined))?.mtime;
      if (writtenAt && now.getTime() - writtenAt.getTime() >= seconds * 1000) await rm(file, { force: true });
    }
  }

  #file(backend: string): string {
    return join(this.#settings.folder, backend);
  }
}

/** The last of many texts, up to a number of bytes. */
class Tail {
  readonly #maxBytes: number;
  #all: string[] = [];
  #first = 0;
  #bytes = 0;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  get isEmpty(): boolean {
    return this.#all.length === this.#first;
  }

  get text(): string {
    return this.#all.slice(this.#first).join('');
  }

  add(text: string): void {
    this.#all.push(text);
    this.#bytes += Buffer.byteLength(text);
    while (this.#bytes > this.#maxBytes) this.#drop();
  }

  #drop(): void {
    this.#bytes -= Buffer.byteLength(this.#all[this.#first] ?? '');
    this.#first += 1;
    if (this.#first < this.#all.length / 2) return;
    this.#all = this.#all.slice(this.#first);
    this.#first = 0;
  }
}

async function* readFrom(file: string, after: string | undefined): AsyncGenerator<LogRecord[], void, void> {
  try {
    for await (const lines of lineBatchesOf(createReadStream(file))) {
      const records = lines.map((line) => logRecord.parse(JSON.parse(line)));
      yield after === undefined ? records : records.filter(({ at }) => at > after);
    }
  } catch (error) {
    // It was just swept.
    if (systemCode(error) !== 'ENOENT') throw error;
  }
}

async function isThere(file: string): Promise<boolean> {
  return (await ifPresent(stat(file))) !== undefined;
}
