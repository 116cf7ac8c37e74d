/** From what the engine kept of a container's output to the lines of its log, each with its place. */
import { maxLineBytes } from '../../contract/backend-streams.ts';
import type { LogRecord } from '../../contract/backend-streams.ts';
import type { LogEntry } from '../docker/log-frames.ts';

/** A character of UTF-8 has at most four bytes. */
const longestCharacterBytes = 4;

const firstTime = '0000000000.000000000';

/** Puts lines together as they come. Each has its place from the entries alone: read again, it has the same. */
export class LogLines {
  readonly #open: Record<LogEntry['source'], OpenLine> = { stdout: newLine(), stderr: newLine() };
  #time = firstTime;
  #index = -1;

  /** The lines that are whole by now. */
  take(entries: readonly LogEntry[]): LogRecord[] {
    const records: LogRecord[] = [];
    for (const entry of entries) this.#add(entry, records);
    return records;
  }

  /** What was begun and will have no end, since the container has ended. */
  end(): LogRecord[] {
    const records: LogRecord[] = [];
    for (const line of Object.values(this.#open)) if (line.bytes > 0) this.#finish(line, records);
    return records;
  }

  #add(entry: LogEntry, records: LogRecord[]): void {
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

  /** Both streams of a container write at once, so the next line may have an earlier time. Its place is after this one. */
  #record(time: string, line: string): LogRecord {
    if (time > this.#time) {
      this.#time = time;
      this.#index = -1;
    }
    this.#index += 1;
    return { at: `${this.#time}-${String(this.#index).padStart(8, '0')}`, line };
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

/** The last place up to `end` at which no character is cut; of what is no text, `end` itself. */
function characterStart(bytes: Buffer, end: number): number {
  for (let at = end; at > end - longestCharacterBytes; at -= 1) {
    const isInside = ((bytes[at] ?? 0) & 0xc0) === 0x80;
    if (!isInside) return at;
  }
  return end;
}
