import { createReadStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { logRecord } from '../../contract/backend-streams.ts';
import type { LogRecord } from '../../contract/backend-streams.ts';
import type { DiskReserve } from '../../core/files/disk-reserve.ts';
import { makeDurableFolder, writeDurably } from '../../core/files/durable.ts';
import { ifPresent, systemCode } from '../../core/files/system-code.ts';
import { lineBatchesOf } from '../../core/text/lines.ts';
import { KeptLogSweep, draftEnding } from './kept-log-sweep.ts';
import type { KeptLogSweepDeps } from './kept-log-sweep.ts';
import type { KeptLogSettings } from '../settings.ts';
import { Semaphore } from '../../core/async/semaphore.ts';

/** Each holds its log in memory. When many backends end at once, the others wait a moment. */
const maxAtATime = 8;

/**
 * Logs of backends that have ended, a file each:
 *
 *     <folder>/<backend>        lines of JSON, the last ones of the log
 *     <folder>/<backend>.draft  one that is being written, or was when the worker was killed
 *
 * A draft is written anew as long as there is the container, and swept like all others when there is none. What is kept for how
 * long, and how much of it, is in `kept-log-sweep.ts`.
 */
export class KeptLogs {
  readonly #settings: KeptLogSettings;
  readonly #reserve: DiskReserve | undefined;
  readonly #permits = new Semaphore(maxAtATime);
  readonly #sweep: KeptLogSweep;

  constructor(
    deps: KeptLogSweepDeps & { readonly settings: KeptLogSettings; readonly reserve?: DiskReserve | undefined },
  ) {
    this.#settings = deps.settings;
    this.#reserve = deps.reserve;
    this.#sweep = new KeptLogSweep(deps);
  }

  /**
   * Keeps the end of a log, so that it is there after a power cut. Does nothing if it is kept already, or empty. Throws
   * `ReserveError` when the disk is needed for the store.
   */
  async keep(backend: string, read: () => AsyncIterable<LogRecord[]>, signal: AbortSignal): Promise<void> {
    using _permit = await this.#permits.acquire(signal);
    if (await isThere(this.#file(backend))) return;
    const { folder, maxBytes, totalBytes } = this.#settings;
    const tail = new Tail(Math.min(maxBytes, totalBytes || Infinity));
    for await (const records of read()) for (const record of records) tail.add(`${JSON.stringify(record)}\n`);
    if (tail.isEmpty) return;
    await this.#reserve?.require(tail.bytes);
    using _writing = this.#sweep.write(backend, tail.bytes);
    await makeDurableFolder(folder);
    await writeDurably(this.#file(backend), tail.text, `${this.#file(backend)}${draftEnding}`);
  }

  /** What is kept of a log from a place on; `undefined` if nothing is. */
  async read(backend: string, after: string | undefined): Promise<AsyncGenerator<LogRecord[], void, void> | undefined> {
    const file = this.#file(backend);
    return (await isThere(file)) ? readFrom(file, after) : undefined;
  }

  /** Takes away, now and then, what has been kept for long enough, and the oldest logs when all take too much. Until disposed. */
  beginSweeping(): AsyncDisposable {
    return this.#sweep.begin();
  }

  /** Does so now. */
  async sweep(): Promise<void> {
    await this.#sweep.sweep();
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

  get bytes(): number {
    return this.#bytes;
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
