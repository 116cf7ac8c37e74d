import type { Stats } from 'node:fs';
import { lstat, opendir, unlink } from 'node:fs/promises';
import { join } from 'node:path';
import type { Clock } from '../../core/clock/clock.ts';
import { ifPresent } from '../../core/files/system-code.ts';
import type { Log } from '../../core/log/log.ts';
import { settledOnClose } from '../close.ts';
import type { KeptLogSettings } from '../settings.ts';

/** A log may be kept for an hour longer than configured. */
const sweepEveryMs = 60 * 60 * 1000;

/** A pass that trims leaves this share of the limit in use, so that not every further log needs a pass. */
const shareLeft = 0.9;

/** File systems allocate whole blocks, and most logs are shorter than one. */
const blockBytes = 4096;

/** The resolution at which ages are counted to find the logs to remove: a week has 10,080 steps. */
const ageStepMs = 60_000;

/** The ending of the file that is written first when a log is kept. */
export const draftEnding = '.draft';

interface KeptFile {
  readonly name: string;
  readonly path: string;
  readonly bytes: number;
  readonly writtenMs: number;
  /** Files with the lowest order are removed first. */
  readonly order: number;
}

export interface KeptLogSweepDeps {
  readonly settings: Pick<KeptLogSettings, 'folder' | 'seconds' | 'totalBytes'>;
  readonly clock: Clock;
  readonly log: Log;
}

/**
 * Removes kept logs: those that have expired and, if all logs exceed the limit, the oldest.
 *
 * A pass over the folder measures their size. Between passes, the size of each kept log is added and nothing is subtracted: the sum
 * may be too high, which costs only another pass. There may be a million logs, so a pass keeps in memory only the names of the step
 * of age in which the last removed log is.
 */
export class KeptLogSweep {
  readonly #deps: KeptLogSweepDeps;
  readonly #maxBytes: number;
  readonly #closing = new AbortController();
  /** Logs that are being written, with their future size on the disk. */
  readonly #writing = new Map<string, number>();
  /** Logs that were written since the last pass began, in order: after the clock was set back, their times would be the oldest. */
  readonly #young = new Map<string, number>();
  #count = 0;
  #last: string | undefined;
  #bytes = 0;
  /** The part of `#bytes` that the pass in progress may miss: logs that were being written when it began, or were written since. */
  #bytesSince = 0;
  #pass: Promise<void> | undefined;
  #isToRepeat = false;
  #timer: Disposable | undefined;

  constructor(deps: KeptLogSweepDeps) {
    this.#deps = deps;
    this.#maxBytes = deps.settings.totalBytes || Infinity;
  }

  /** Sweeps now, regularly, and as soon as the limit is exceeded, until disposed. */
  begin(): AsyncDisposable {
    const { clock } = this.#deps;
    const timer = clock.every(sweepEveryMs, () => this.#sweepOrLog());
    this.#timer = timer;
    this.#sweepOrLog();
    return {
      [Symbol.asyncDispose]: async () => {
        timer[Symbol.dispose]();
        this.#timer = undefined;
        this.#closing.abort(new Error('The worker is closing'));
        await settledOnClose(this.#pass);
      },
    };
  }

  /** Marks a log as being written until the result is disposed. It is not removed meanwhile. */
  write(backend: string, bytes: number): Disposable {
    const size = onDisk(bytes);
    this.#writing.set(backend, size);
    this.#bytes += size;
    this.#bytesSince += size;
    return {
      [Symbol.dispose]: () => {
        this.#writing.delete(backend);
        this.#count += 1;
        this.#young.set(backend, this.#count);
        this.#last = backend;
        if (!this.#timer || this.#bytes <= this.#maxBytes) return;
        if (this.#pass) this.#isToRepeat = true;
        else this.#sweepOrLog();
      },
    };
  }

  /** Removes expired logs, and the oldest logs if the limit is exceeded. */
  sweep(): Promise<void> {
    this.#pass ??= this.#sweepUntilEnough().finally(() => {
      this.#pass = undefined;
    });
    return this.#pass;
  }

  #sweepOrLog(): void {
    this.sweep().catch((error: unknown) => {
      if (this.#closing.signal.aborted) return;
      // The next log will not remove the cause: try again after as many bytes as a pass would have removed.
      this.#bytes = Math.min(this.#bytes, this.#maxBytes * shareLeft);
      this.#deps.log.warn({ err: error }, 'Cannot sweep the kept logs');
    });
  }

  async #sweepUntilEnough(): Promise<void> {
    do {
      this.#isToRepeat = false;
      await this.#sweepOnce(this.#deps.clock.now().getTime());
    } while (this.#isToRepeat && this.#bytes > this.#maxBytes);
  }

  async #sweepOnce(nowMs: number): Promise<void> {
    const countBefore = this.#count;
    this.#bytesSince = sum(this.#writing.values());
    const bytesByAge = new Map<number, number>();
    for await (const file of this.#files(nowMs)) {
      if (nowMs - file.writtenMs >= this.#deps.settings.seconds * 1000) await remove(file);
      else bytesByAge.set(ageOf(file), (bytesByAge.get(ageOf(file)) ?? 0) + file.bytes);
    }
    const found = sum(bytesByAge.values());
    const removed = found > this.#maxBytes ? await this.#trim(found, bytesByAge, nowMs) : 0;
    this.#bytes = found - removed + this.#bytesSince;
    for (const [backend, count] of this.#young) if (count <= countBefore) this.#young.delete(backend);
  }

  /** Removes the oldest logs, and returns their size in bytes. */
  async #trim(found: number, bytesByAge: ReadonlyMap<number, number>, nowMs: number): Promise<number> {
    const excess = found - this.#maxBytes * shareLeft;
    const lastAge = ageThatReaches(excess, bytesByAge);
    const removed = { logs: 0, bytes: 0, writtenUntil: new Date(0) };
    const drop = async (file: KeptFile) => {
      await remove(file);
      removed.logs += 1;
      removed.bytes += file.bytes;
      removed.writtenUntil = new Date(Math.max(file.writtenMs, removed.writtenUntil.getTime()));
    };
    const lastOnes: KeptFile[] = [];
    for await (const file of this.#files(nowMs)) {
      if (ageOf(file) < lastAge) await drop(file);
      else if (ageOf(file) === lastAge) lastOnes.push(file);
    }
    lastOnes.sort((one, other) => one.order - other.order || one.writtenMs - other.writtenMs);
    for (const file of lastOnes) {
      if (removed.bytes >= excess) break;
      if (file.name !== this.#last && !this.#writing.has(backendOf(file.name))) await drop(file);
    }
    const { log, settings } = this.#deps;
    log.warn(
      { ...removed, limitBytes: settings.totalBytes },
      'Kept logs exceeded their limit, the oldest were removed early',
    );
    return removed.bytes;
  }

  async *#files(nowMs: number): AsyncGenerator<KeptFile, void, void> {
    const { folder } = this.#deps.settings;
    for await (const { name } of (await ifPresent(opendir(folder))) ?? []) {
      this.#closing.signal.throwIfAborted();
      const path = join(folder, name);
      const found = await lstat(path).catch(() => undefined);
      // Checked after lstat: the writing may just have begun.
      if (!found?.isFile() || this.#writing.has(backendOf(name))) continue;
      const order = this.#orderOf(name, found, nowMs);
      yield { name, path, bytes: onDisk(found.size), writtenMs: found.mtimeMs, order };
    }
  }

  /** A file with a time in the future was written while the clock was ahead. Its age is unknown, so it is removed first. */
  #orderOf(name: string, { mtimeMs }: Stats, nowMs: number): number {
    const count = this.#young.get(name);
    if (count !== undefined) return nowMs + count;
    return mtimeMs > nowMs ? 0 : mtimeMs;
  }
}

/** The step of age up to which files add up to this many bytes. */
function ageThatReaches(bytes: number, bytesByAge: ReadonlyMap<number, number>): number {
  let reached = 0;
  for (const [age, more] of [...bytesByAge].sort(([one], [other]) => one - other)) {
    reached += more;
    if (reached >= bytes) return age;
  }
  return Infinity;
}

function ageOf({ order }: KeptFile): number {
  return Math.floor(order / ageStepMs);
}

function onDisk(bytes: number): number {
  return Math.ceil(bytes / blockBytes) * blockBytes;
}

function backendOf(name: string): string {
  return name.endsWith(draftEnding) ? name.slice(0, -draftEnding.length) : name;
}

async function remove({ path }: KeptFile): Promise<void> {
  await ifPresent(unlink(path));
}

function sum(numbers: Iterable<number>): number {
  let total = 0;
  for (const each of numbers) total += each;
  return total;
}
