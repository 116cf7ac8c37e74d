/**
 * Parses HTTP/1.1 messages that have exactly one reading, and reports all others. It shares no code with the proxy, so that a
 * mistake in one parser is detected by the other.
 */

/** A complete message. Heads, bodies and trailers are Latin-1, a character for each byte. */
export interface Message {
  readonly startLine: string;
  readonly headers: readonly (readonly [name: string, value: string])[];
  readonly body: string;
  readonly trailers: readonly (readonly [name: string, value: string])[];
}

const requestLine = /^[!#$%&'*+.^_`|~\w-]+ [!-~\x80-\xff]+ HTTP\/1\.[01]$/;
const statusLine = /^HTTP\/1\.[01] [1-9]\d\d(?: [\t -~\x80-\xff]*)?$/;
const fieldLine = /^([!#$%&'*+.^_`|~\w-]+):[ \t]*([\t -~\x80-\xff]*?)[ \t]*$/;

/** The framing of a body: its length, chunks, or the end of the connection. */
type Framing = number | 'chunked' | 'until-close';

export interface ReaderOptions {
  readonly kind: 'request' | 'response';
  /** Whether the next response has a head only. */
  readonly isForHead?: () => boolean;
}

export class StrictReader {
  readonly #options: ReaderOptions;
  #bytes = '';
  #isUntilClose = false;
  readonly messages: Message[] = [];
  /** Why the bytes do not have exactly one reading. Later bytes are not read. */
  problem: string | undefined;

  constructor(options: ReaderOptions) {
    this.#options = options;
  }

  /** The bytes of the incomplete message. */
  get pending(): string {
    return this.#bytes;
  }

  /** Reads bytes, and returns the messages that they complete. */
  push(chunk: string): Message[] {
    this.#bytes += chunk;
    const before = this.messages.length;
    try {
      while (this.problem === undefined && this.#bytes !== '' && this.#next()) {
        // Each iteration reads a message.
      }
    } catch (error) {
      this.problem = `${(error as Error).message} in ${JSON.stringify(this.#bytes.slice(0, 2_000))}`;
    }
    return this.messages.slice(before);
  }

  /** Call it when the connection ends. Returns whether it ends between two messages. */
  end(): boolean {
    if (this.#isUntilClose) {
      this.#isUntilClose = false;
      const { head, rest } = headOf(this.#bytes) ?? { head: '', rest: '' };
      this.#add(head, rest, []);
      this.#bytes = '';
    }
    return this.#bytes === '';
  }

  #next(): boolean {
    const found = headOf(this.#bytes);
    if (!found) {
      // An incomplete head may already be invalid.
      rejectIf(/^\n|[^\r]\n|\r[^\n]/.test(this.#bytes) || hasControl(this.#bytes), 'a control character or line end');
      return false;
    }
    const { head, rest } = found;
    const framing = this.#framingOf(head);
    if (framing === 'until-close') {
      this.#isUntilClose = true;
      return false;
    }
    const body = framing === 'chunked' ? chunkedBody(rest) : lengthBody(rest, framing);
    if (!body) return false;
    this.#add(head, body.body, body.trailers);
    this.#bytes = rest.slice(body.length);
    return true;
  }

  #add(head: string, body: string, trailers: Message['trailers']): void {
    const [startLine = '', ...lines] = head.split('\r\n');
    this.messages.push({ startLine, headers: fields(lines), body, trailers });
  }

  #framingOf(head: string): Framing {
    const [startLine = '', ...lines] = head.split('\r\n');
    const isRequest = this.#options.kind === 'request';
    rejectIf(!(isRequest ? requestLine : statusLine).test(startLine), 'a start line');
    const headers = fields(lines);
    const valuesOf = (name: string) => headers.flatMap(([each, value]) => (each.toLowerCase() === name ? [value] : []));
    const [lengths, codings, hosts] = [valuesOf('content-length'), valuesOf('transfer-encoding'), valuesOf('host')];
    rejectIf(lengths.length + codings.length > 1, 'two lengths');
    rejectIf(
      lengths.some((length) => !/^\d{1,15}$/.test(length)),
      'a length that is not a number',
    );
    rejectIf(
      codings.some((coding) => coding.toLowerCase() !== 'chunked'),
      'another coding than chunked',
    );
    rejectIf(codings.length > 0 && startLine.includes('HTTP/1.0'), 'chunks in HTTP/1.0');
    if (isRequest) {
      rejectIf(hosts.length > 1 || (hosts.length === 0 && startLine.endsWith('1')), 'not one host');
      return codings.length > 0 ? 'chunked' : Number(lengths[0] ?? 0);
    }
    const status = Number(startLine.slice(9, 12));
    if (status < 200) return 0;
    const isHead = this.#options.isForHead?.() === true;
    if (isHead || status === 204 || status === 304) return 0;
    if (codings.length > 0) return 'chunked';
    return lengths[0] === undefined ? 'until-close' : Number(lengths[0]);
  }
}

function headOf(bytes: string): { head: string; rest: string } | undefined {
  const end = bytes.indexOf('\r\n\r\n');
  return end < 0 ? undefined : { head: bytes.slice(0, end), rest: bytes.slice(end + 4) };
}

function hasControl(bytes: string): boolean {
  return Array.from(bytes).some((each) => (each < ' ' && !'\t\r\n'.includes(each)) || each === '\x7f');
}

function fields(lines: readonly string[]): [string, string][] {
  return lines.map((line) => {
    const [, name, value] = fieldLine.exec(line) ?? [];
    if (name === undefined || value === undefined) throw new Error(`the line ${JSON.stringify(line)}`);
    return [name, value];
  });
}

interface Body {
  readonly body: string;
  readonly trailers: Message['trailers'];
  /** The number of bytes, with chunk sizes and trailers. */
  readonly length: number;
}

function lengthBody(rest: string, length: number): Body | undefined {
  return rest.length < length ? undefined : { body: rest.slice(0, length), trailers: [], length };
}

function chunkedBody(rest: string): Body | undefined {
  let body = '';
  for (let at = 0; ;) {
    const end = rest.indexOf('\r\n', at);
    if (end < 0) {
      rejectIf(!/^[0-9a-f]{0,8}\r?$/i.test(rest.slice(at)), 'the size of a chunk');
      return undefined;
    }
    const size = rest.slice(at, end);
    rejectIf(!/^[0-9a-f]{1,8}$/i.test(size), 'the size of a chunk');
    const bytes = Number.parseInt(size, 16);
    at = end + 2;
    if (bytes === 0) return trailersAt(rest, at, body);
    if (rest.length < at + bytes + 2) return undefined;
    body += rest.slice(at, at + bytes);
    rejectIf(rest.slice(at + bytes, at + bytes + 2) !== '\r\n', 'the end of a chunk');
    at += bytes + 2;
  }
}

function trailersAt(rest: string, at: number, body: string): Body | undefined {
  if (rest.startsWith('\r\n', at)) return { body, trailers: [], length: at + 2 };
  const end = rest.indexOf('\r\n\r\n', at);
  if (end < 0) return undefined;
  return { body, trailers: fields(rest.slice(at, end).split('\r\n')), length: end + 4 };
}

function rejectIf(isWrong: boolean, what: string): void {
  if (isWrong) throw new Error(what);
}
