/** Assembles the lines of a container's log from the engine's entries. */
import { maxLineBytes } from '../../contract/backend-streams.ts';
import type { LogRecord } from '../../contract/backend-streams.ts';
import type { LogEntry } from '../docker/log-frames.ts';

/** A UTF-8 character has at most four bytes. */
const longestCharacterBytes = 4;

const firstTime = '0000000000.000000000';

/** Assembles lines incrementally. The position of a line depends on the entries alone: read again, a line has the same position. */
export class LogLines {
  readonly #open: Record<LogEntry['source'], OpenLine> = { stdout: newLine(), stderr: newLine() };
  #time = firstTime;
  #index = -1;

  /** Returns the lines that are complete with these entries. */
  add(entries: readonly LogEntry[]): LogRecord[] {
    const records: LogRecord[] = [];
    for (const entry of entries) this.#addEntry(entry, records);
    return records;
  }

  /** Returns the unfinished lines, once the container has exited. */
  end(): LogRecord[] {
    const records: LogRecord[] = [];
    for (const line of Object.values(this.#open)) if (line.bytes > 0) this.#finish(line, records);
    return records;
  }

  #addEntry(entry: LogEntry, records: LogRecord[]): void {
    const line = this.#open[entry.source];
    if (line.bytes === 0) line.time = entry.time;
    line.parts.push(entry.text);
    line.bytes += entry.text.length;
    if (line.bytes > maxLineBytes) this.#split(line, records);
    if (entry.endsLine) this.#finish(line, records);
  }

  #split(line: OpenLine, records: LogRecord[]): void {
    let rest = Buffer.concat(line.parts);
    while (rest.length > maxLineBytes) {
      const cut = characterStart(rest, maxLineBytes);
      records.push(this.#record(line.time, rest.toString('utf8', 0, cut)));
      rest = rest.subarray(cut);
    }
    line.parts = [rest];
    line.bytes = rest.length;
  }

  #finish(line: OpenLine, records: LogRecord[]): void {
    const [only = Buffer.alloc(0), ...more] = line.parts;
    const bytes = more.length === 0 ? only : Buffer.concat(line.parts);
    records.push(this.#record(line.time, bytes.toString('utf8').replace(/\r$/, '')));
    line.parts = [];
    line.bytes = 0;
  }

  /** Both streams of a container write at once, so a line may have an earlier time than the previous one, but gets a later position. */
  #record(time: string, line: string): LogRecord {
    if (time > this.#time) {
      this.#time = time;
      this.#index = -1;
    }
    this.#index += 1;
    return { at: `${this.#time}-${String(this.#index).padStart(8, '0')}`, line };
  }
}

/**
 * Detects entries that an engine sends twice: when a container writes much, the engine may reread its file from the start. The times
 * of one stream never decrease, so entries before the latest time, and up to it, are repetitions.
 */
export class LogReplays {
  readonly #latest = { stdout: '', stderr: '' };
  readonly #isReplayed = { stdout: false, stderr: false };

  isNew({ source, time }: LogEntry): boolean {
    const latest = this.#latest[source];
    if (time < latest) this.#isReplayed[source] = true;
    if (time > latest) this.#isReplayed[source] = false;
    if (this.#isReplayed[source]) return false;
    this.#latest[source] = time;
    return true;
  }
}

interface OpenLine {
  time: string;
  parts: Buffer[];
  bytes: number;
}

function newLine(): OpenLine {
  return { time: firstTime, parts: [], bytes: 0 };
}

/** The last index up to `end` that cuts no character; `end` itself if the bytes are not UTF-8. */
function characterStart(bytes: Buffer, end: number): number {
  for (let at = end; at > end - longestCharacterBytes; at -= 1) {
    const isInside = ((bytes[at] ?? 0) & 0xc0) === 0x80;
    if (!isInside) return at;
  }
  return end;
}
