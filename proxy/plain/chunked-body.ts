import { forwardedTrailers } from '../response-headers.ts';
import { MalformedBody } from './body.ts';
import type { Body } from './body.ts';

/** The maximum length of a line with the size of a chunk. It may have extensions, which are not forwarded. */
const maxSizeLine = 1024;

/** Bytes of extensions in one body: a client could send sixteen of them with each byte of a body (CVE-2024-22019). */
const maxExtensionBytes = 16 * 1024;

const maxTrailerBytes = 16 * 1024;

const maxTrailers = 100;

/** The size of a chunk, at most 2^52 bytes, without leading zeros, and its extensions. */
const sizeLine = /^0*([0-9a-f]{1,13})((?:;[\t -~\x80-\xff]*)?)\r?\n$/i;

const trailerLine =
  /^([!#$%&'*+\-.^_`|~0-9A-Za-z]+):[\t ]*((?:[!-~\x80-\xff](?:[\t -~\x80-\xff]*[!-~\x80-\xff])?)?)[\t ]*\r?\n$/;

const lineFeed = 10;

const carriageReturn = 13;

type State = 'size' | 'data' | 'data-end' | 'trailers' | 'complete';

/**
 * A body in chunks. Chunks are forwarded as they were sent, and lines only whole and in the form that every parser reads in the same
 * way: a line that arrives in parts, or a size with extensions or leading zeros, is rewritten.
 */
export class ChunkedBody implements Body {
  /** Whether trailers may end in a bare LF, as lines of a head. */
  readonly #isLenient: boolean;
  #state: State = 'size';
  /** Bytes of the current chunk that are still to come. */
  #left = 0;
  /** The beginning of a line whose end has not arrived. */
  #line = '';
  #extensionBytes = 0;
  #trailerBytes = 0;
  readonly #trailers: string[] = [];

  constructor({ isLenient }: { readonly isLenient: boolean }) {
    this.#isLenient = isLenient;
  }

  get isComplete(): boolean {
    return this.#state === 'complete';
  }

  read(bytes: Buffer, pass: (part: Buffer) => void): number {
    /** From here to `at`, the bytes are forwarded unchanged. */
    let from = 0;
    let at = 0;
    while (at < bytes.length && this.#state !== 'complete') {
      if (this.#state === 'data') {
        const used = Math.min(this.#left, bytes.length - at);
        this.#left -= used;
        at += used;
        if (this.#left === 0) this.#state = 'data-end';
        continue;
      }
      const end = bytes.indexOf(lineFeed, at) + 1;
      const line = bytes.toString('latin1', at, end === 0 ? bytes.length : end);
      const isCut = end === 0 || this.#line !== '';
      const whole = this.#completeLine(line, end > 0);
      const instead = whole === undefined ? '' : this.#readLine(whole);
      if (isCut || instead !== whole) {
        if (at > from) pass(bytes.subarray(from, at));
        if (instead !== '') pass(Buffer.from(instead, 'latin1'));
        from = end === 0 ? bytes.length : end;
      }
      at = end === 0 ? bytes.length : end;
    }
    if (at > from) pass(bytes.subarray(from, at));
    return at;
  }

  /** Adds to the current line, and returns it when it is complete. */
  #completeLine(part: string, hasEnd: boolean): string | undefined {
    this.#line += part;
    if (this.#line.length > (this.#state === 'trailers' ? maxTrailerBytes : maxSizeLine)) {
      throw new MalformedBody('A line of a chunked body is too long');
    }
    if (!hasEnd) {
      this.#checkStart();
      return undefined;
    }
    const line = this.#line;
    this.#line = '';
    const mayBeBare = this.#isLenient && this.#state === 'trailers';
    if (!mayBeBare && line.charCodeAt(line.length - 2) !== carriageReturn) {
      throw new MalformedBody('A line of a chunked body ends in a bare line feed');
    }
    return line;
  }

  /** Rejects a line as soon as it cannot become valid. */
  #checkStart(): void {
    const start = this.#line;
    const isPossible =
      this.#state === 'data-end' ? start === '\r' : this.#state === 'trailers' || /^[0-9a-f]/i.test(start);
    if (!isPossible) throw new MalformedBody('The framing of a chunked body is not valid');
  }

  /** Reads a whole line, and returns the text to forward in its place. */
  #readLine(line: string): string {
    if (this.#state === 'size') return this.#readSize(line);
    if (this.#state === 'trailers') return this.#readTrailer(line);
    if (line !== '\r\n') throw new MalformedBody('A chunk is longer than its size');
    this.#state = 'size';
    return '\r\n';
  }

  #readSize(line: string): string {
    const [, digits = '', extensions = ''] = sizeLine.exec(line) ?? [];
    if (digits === '') throw new MalformedBody('The size of a chunk is not valid');
    this.#extensionBytes += extensions.length;
    if (this.#extensionBytes > maxExtensionBytes) throw new MalformedBody('The extensions of chunks are too long');
    this.#left = Number.parseInt(digits, 16);
    this.#state = this.#left === 0 ? 'trailers' : 'data';
    return this.#left === 0 ? '0\r\n' : `${digits.replace(/^0+/, '')}\r\n`;
  }

  /** Collects trailers until the last one. */
  #readTrailer(line: string): string {
    if (line === '\r\n' || line === '\n') {
      this.#state = 'complete';
      const forwarded = forwardedTrailers(this.#trailers).map(([name, value]) => `${name}: ${value}\r\n`);
      return `${forwarded.join('')}\r\n`;
    }
    const [, name, value = ''] = trailerLine.exec(line) ?? [];
    this.#trailerBytes += line.length;
    if (name === undefined || this.#trailerBytes > maxTrailerBytes || this.#trailers.length >= 2 * maxTrailers) {
      throw new MalformedBody('The trailers of a chunked body are not valid');
    }
    this.#trailers.push(name, value);
    return '';
  }
}
