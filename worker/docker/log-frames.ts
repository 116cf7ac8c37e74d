/** Docker's form of logs: frames of two interleaved streams. */

/** What the engine has kept of one write, at most 16 KiB of it. */
export interface LogEntry {
  readonly source: 'stdout' | 'stderr';
  /** When it, or the line that it goes on with, began: seconds and nanoseconds, as many digits always. */
  readonly time: string;
  /** Without the newline. */
  readonly text: Buffer;
  /** Whether the line ends here; otherwise the next entry of the same source goes on with it. */
  readonly endsLine: boolean;
}

/** Which stream, three empty bytes, and the length of what follows. */
const headBytes = 8;
const stderr = 2;
const newline = 0x0a;
const space = 0x20;

/** Takes a log apart as it comes, wherever its chunks are cut. */
export class LogFrames {
  #rest: Buffer = Buffer.alloc(0);
  readonly #times = new Times();

  /** The entries that are whole by now. */
  take(chunk: Buffer): LogEntry[] {
    const bytes = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk]);
    const entries: LogEntry[] = [];
    let at = 0;
    while (bytes.length - at >= headBytes) {
      const end = at + headBytes + bytes.readUInt32BE(at + 4);
      if (end > bytes.length) break;
      entries.push(this.#entry(bytes[at] === stderr ? 'stderr' : 'stdout', bytes.subarray(at + headBytes, end)));
      at = end;
    }
    this.#rest = bytes.subarray(at);
    return entries;
  }

  #entry(source: LogEntry['source'], payload: Buffer): LogEntry {
    const afterTime = payload.indexOf(space) + 1;
    const endsLine = payload.at(-1) === newline;
    return {
      source,
      time: this.#times.of(payload.toString('latin1', 0, afterTime - 1)),
      text: payload.subarray(afterTime, endsLine ? -1 : undefined),
      endsLine,
    };
  }
}

/** Reads `2026-01-01T00:00:00.123456789Z`. Most lines begin in the same second as the one before. */
class Times {
  #second = '';
  #seconds = '';

  of(text: string): string {
    const [second = '', fraction = ''] = text.replace('Z', '').split('.');
    if (second !== this.#second) {
      this.#second = second;
      this.#seconds = String(Date.parse(`${second}Z`) / 1000).padStart(10, '0');
    }
    return `${this.#seconds}.${fraction.padEnd(9, '0')}`;
  }
}
