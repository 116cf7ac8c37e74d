import type { Stats } from 'node:fs';
import { lstat, opendir, unlink } from 'node:fs/promises';
import { join } from 'node:path';
import { settledWithin } from '../../core/async/with-timeout.ts';
import type { Clock } from '../../core/clock/clock.ts';
import { ifPresent } from '../../core/files/system-code.ts';
import type { Log } from '../../core/log/log.ts';
import { closeWithinMs } from '../settings.ts';
import type { KeptLogSettings } from '../settings.ts';

/** Keeping logs for an hour too long harms nobody. */
const sweepEveryMs = 60 * 60 * 1000;

/** After a pass this much of the bound is in use, at most: so that not every log that is kept needs one. */
const shareLeft = 0.9;

/** Disks give away whole blocks, and most logs are shorter than one. */
const blockBytes = 4096;

/** How finely the ages of logs are told apart before it is known which of them go: a week has 10,080. */
const ageStepMs = 60_000;

/** What is written first when a log is being kept. */
export const draftEnding = '.draft';

interface KeptFile {
  readonly name: string;
  readonly path: string;
  readonly bytes: number;
  readonly writtenMs: number;
  /** By this they go, the lowest first. */
  readonly order: number;
}

export interface KeptLogSweepDeps {
  readonly settings: Pick<KeptLogSettings, 'folder' | 'seconds' | 'totalBytes'>;
  readonly clock: Clock;
  readonly log: Log;
}

/**
 * Takes away kept logs: those that were kept for long enough and, when all of them take more than they may, the oldest.
 *
 * A pass over the folder measures what they take. In between, what is kept is added to that, and never anything taken off: it
 * may only seem to be too much, which costs a pass that measures it anew. There may be a million of them, so a pass remembers no
 * names but of those among which the last ones to go are.
 */
export class KeptLogSweep {
  readonly #deps: KeptLogSweepDeps;
  readonly #maxBytes: number;
  readonly #over = new AbortController();
  /** Logs that are being written, with what they will take. */
  readonly #writing = new Map<string, number>();
  /** Logs that were written since the last pass began, in this order: a clock that was set back would have them go first. */
  readonly #young = new Map<string, number>();
  #count = 0;
  #last: string | undefined;
  #bytes = 0;
  /** What of that the pass under way may miss: what was being written when it began, or has come since. */
  #bytesSince = 0;
  #pass: Promise<void> | undefined;
  #isToRepeat = false;
  #timer: Disposable | undefined;

  constructor(deps: KeptLogSweepDeps) {
    this.#deps = deps;
    this.#maxBytes = deps.settings.totalBytes || Infinity;
  }

  /** Sweeps now, now and then, and as soon as there is too much, until disposed. */
  begin(): AsyncDisposable {
    const { clock } = this.#deps;
    const timer = clock.every(sweepEveryMs, () => this.#sweepOrTell());
    this.#timer = timer;
    this.#sweepOrTell();
    return {
      [Symbol.asyncDispose]: async () => {
        timer[Symbol.dispose]();
        this.#timer = undefined;
        this.#over.abort(new Error('The worker is closing'));
        await settledWithin({ ms: closeWithinMs }, async () => await this.#pass);
      },
    };
  }

  /** A log is being written, until what this returns is disposed. Nobody takes it away meanwhile. */
  write(backend: string, bytes: number): Disposable {
    const taken = onDisk(bytes);
    this.#writing.set(backend, taken);
    this.#bytes += taken;
    this.#bytesSince += taken;
    return {
      [Symbol.dispose]: () => {
        this.#writing.delete(backend);
        this.#count += 1;
        this.#young.set(backend, this.#count);
        this.#last = backend;
        if (!this.#timer || this.#bytes <= this.#maxBytes) return;
        if (this.#pass) this.#isToRepeat = true;
        else this.#sweepOrTell();
      },
    };
  }

  /** Takes away what has been kept for long enough, and what is too much. */
  sweep(): Promise<void> {
    this.#pass ??= this.#sweepUntilEnough().finally(() => {
      this.#pass = undefined;
    });
    return this.#pass;
  }

  #sweepOrTell(): void {
    this.sweep().catch((error: unknown) => {
      if (this.#over.signal.aborted) return;
      // Whatever it is, the next log will not have mended it: it is tried again after as much as a pass makes room for.
      this.#bytes = Math.min(this.#bytes, this.#maxBytes * shareLeft);
      this.#deps.log.warn({ err: error }, 'Kept logs cannot be swept');
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

  /** Takes away the oldest ones, and returns how many bytes that were. */
  async #trim(found: number, bytesByAge: ReadonlyMap<number, number>, nowMs: number): Promise<number> {
    const excess = found - this.#maxBytes * shareLeft;
    const lastAge = ageThatReaches(excess, bytesByAge);
    const removed = { logs: 0, bytes: 0, writtenUntil: new Date(0) };
    const take = async (file: KeptFile) => {
      await remove(file);
      removed.logs += 1;
      removed.bytes += file.bytes;
      removed.writtenUntil = new Date(Math.max(file.writtenMs, removed.writtenUntil.getTime()));
    };
    const lastOnes: KeptFile[] = [];
    for await (const file of this.#files(nowMs)) {
      if (ageOf(file) < lastAge) await take(file);
      else if (ageOf(file) === lastAge) lastOnes.push(file);
    }
    lastOnes.sort((one, other) => one.order - other.order || one.writtenMs - other.writtenMs);
    for (const file of lastOnes) {
      if (removed.bytes >= excess) break;
      if (file.name !== this.#last && !this.#writing.has(backendOf(file.name))) await take(file);
    }
    const { log, settings } = this.#deps;
    log.warn(
      { ...removed, limitBytes: settings.totalBytes },
      'Kept logs took too much space, the oldest were removed early',
    );
    return removed.bytes;
  }

  async *#files(nowMs: number): AsyncGenerator<KeptFile, void, void> {
    const { folder } = this.#deps.settings;
    for await (const { name } of (await ifPresent(opendir(folder))) ?? []) {
      this.#over.signal.throwIfAborted();
      const path = join(folder, name);
      const found = await lstat(path).catch(() => undefined);
      // Looked up last, since it may just have begun.
      if (!found?.isFile() || this.#writing.has(backendOf(name))) continue;
      const order = this.#orderOf(name, found, nowMs);
      yield { name, path, bytes: onDisk(found.size), writtenMs: found.mtimeMs, order };
    }
  }

  /** Those whose time has not come were written under a clock that was ahead: nobody knows how old they are, so they go first. */
  #orderOf(name: string, { mtimeMs }: Stats, nowMs: number): number {
    const count = this.#young.get(name);
    if (count !== undefined) return nowMs + count;
    return mtimeMs > nowMs ? 0 : mtimeMs;
  }
}

/** The age up to which there are this many bytes. */
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
