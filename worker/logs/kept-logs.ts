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

/** Logs that are kept at a time: each is held in memory. If many backends end at once, the others wait. */
const maxConcurrentKeeps = 8;

/**
 * The logs of backends that have ended, one file each:
 *
 *     <folder>/<backend>        the last lines of the log, as lines of JSON
 *     <folder>/<backend>.draft  a log that is being written, or was when the worker was killed
 *
 * A draft is replaced while the container exists, and swept like every file afterwards. `kept-log-sweep.ts` limits age and size.
 */
export class KeptLogs {
  readonly #settings: KeptLogSettings;
  readonly #reserve: DiskReserve | undefined;
  readonly #permits = new Semaphore(maxConcurrentKeeps);
  readonly #sweep: KeptLogSweep;

  constructor(
    deps: KeptLogSweepDeps & { readonly settings: KeptLogSettings; readonly reserve?: DiskReserve | undefined },
  ) {
    this.#settings = deps.settings;
    this.#reserve = deps.reserve;
    this.#sweep = new KeptLogSweep(deps);
  }

  /** Stores the end of a log durably, unless it is stored already or empty. Throws `ReserveError` if the store needs the disk. */
  async keep(backend: string, read: () => AsyncIterable<LogRecord[]>, signal: AbortSignal): Promise<void> {
    using _permit = await this.#permits.acquire(signal);
    if (await exists(this.#file(backend))) return;
    const { folder, maxBytes, totalBytes } = this.#settings;
    const tail = new Tail(Math.min(maxBytes, totalBytes || Infinity));
    for await (const records of read()) for (const record of records) tail.add(`${JSON.stringify(record)}\n`);
    if (tail.isEmpty) return;
    await this.#reserve?.require(tail.bytes);
    using _writing = this.#sweep.write(backend, tail.bytes);
    await makeDurableFolder(folder);
    await writeDurably(this.#file(backend), tail.text, `${this.#file(backend)}${draftEnding}`);
  }

  /** Reads a kept log after a position; `undefined` if the log is not kept. */
  async read(backend: string, after: string | undefined): Promise<AsyncGenerator<LogRecord[], void, void> | undefined> {
    const file = this.#file(backend);
    return (await exists(file)) ? readFrom(file, after) : undefined;
  }

  /** Removes regularly, until disposed, expired logs, and the oldest logs if all of them take too much space. */
  beginSweeping(): AsyncDisposable {
    return this.#sweep.begin();
  }

  /** Removes such logs now. */
  async sweep(): Promise<void> {
    await this.#sweep.sweep();
  }

  #file(backend: string): string {
    return join(this.#settings.folder, backend);
  }
}

/** The last texts of a sequence, up to a number of bytes. */
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
    // The log was swept meanwhile.
    if (systemCode(error) !== 'ENOENT') throw error;
  }
}

async function exists(file: string): Promise<boolean> {
  return (await ifPresent(stat(file))) !== undefined;
}
