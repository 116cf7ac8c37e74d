/** Docker's log format: frames of two interleaved streams. */

/** One write of a container as the engine has stored it, at most 16 KiB. */
export interface LogEntry {
  readonly source: 'stdout' | 'stderr';
  /** When the line of this entry began: seconds and nanoseconds, always with the same number of digits. */
  readonly time: string;
  /** Without the newline. */
  readonly text: Buffer;
  /** Whether the line ends here; otherwise the next entry of the same source continues it. */
  readonly endsLine: boolean;
}

interface Frame {
  readonly source: LogEntry['source'];
  readonly payload: Buffer;
}

/** The head of a frame: the stream, three empty bytes, and the length of the payload. */
export const headBytes = 8;
const stderr = 2;
const newline = 0x0a;
const space = 0x20;

/** Returns the complete frames at the beginning of these bytes, and the rest. */
export function splitFrames(bytes: Buffer): { readonly frames: Frame[]; readonly rest: Buffer } {
  const frames: Frame[] = [];
  let at = 0;
  while (bytes.length - at >= headBytes) {
    const end = at + headBytes + bytes.readUInt32BE(at + 4);
    if (end > bytes.length) break;
    frames.push({ source: bytes[at] === stderr ? 'stderr' : 'stdout', payload: bytes.subarray(at + headBytes, end) });
    at = end;
  }
  return { frames, rest: bytes.subarray(at) };
}

/** Parses a log incrementally, wherever its chunks are cut. */
export class LogFrames {
  #rest: Buffer = Buffer.alloc(0);
  readonly #times = new Times();

  /** Returns the entries that are complete with this chunk. */
  add(chunk: Buffer): LogEntry[] {
    const { frames, rest } = splitFrames(this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk]));
    this.#rest = rest;
    return frames.map(({ source, payload }) => this.#entry(source, payload));
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

/** Parses `2026-01-01T00:00:00.123456789Z`. Most lines begin in the same second as the previous line, which is cached. */
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
