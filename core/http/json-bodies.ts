/** Reads JSON bodies and forms within limits of size, time, and total memory. */
import { isUtf8 } from 'node:buffer';
import type { IncomingMessage } from 'node:http';
import type { Clock } from '../clock/clock.ts';
import { sizeText } from '../text/size-text.ts';
import { bodyBytes } from './linger.ts';
import { CodedError } from '../errors/coded-error.ts';

/** The maximum time for a body. At half a megabit per second, 1 MiB arrives in this time. */
const maxBodyMs = 20_000;

/** The memory for all bodies that are being read: enough for thousands of ordinary ones, and little for a small machine. */
const maxHeldBytes = 32 * 1024 * 1024;

/** The share of one account, so that no account blocks the requests of others. */
const maxAccountBytes = maxHeldBytes / 4;

/** The maximum nesting of JSON. No request needs more, and later code recurses over it. */
const maxDepth = 100;

/**
 * What is wrong with a body. `wrong-type`: the headers do not describe the expected type. `malformed`: the bytes are not of that type.
 * `cut`: the client disconnected. `too-many`: other bodies use all the memory.
 */
type BodyProblem = 'wrong-type' | 'malformed' | 'cut' | 'too-large' | 'too-slow' | 'too-many';

/** Thrown when a body cannot be read or is rejected. */
export class BodyError extends CodedError<BodyProblem> {
  override readonly name = 'BodyError';
}

interface BodyOptions {
  readonly maxBytes: number;
  /** The account whose share of the memory it uses. */
  readonly account: string;
  /** Default: `json`. */
  readonly type?: 'json' | 'form';
}

const mediaTypes = { json: 'application/json', form: 'application/x-www-form-urlencoded' } as const;

/** Reads the JSON bodies and forms of a process. */
export class JsonBodies {
  readonly #clock: Clock;
  readonly #heldBytes = new Map<string, number>();
  #totalBytes = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /**
   * The value in a request body: an object without fields if the body is empty; for a form, the last value of each field. Throws
   * `BodyError`, and then leaves the rest of the body unread.
   */
  async read(request: IncomingMessage, { maxBytes, account, type = 'json' }: BodyOptions): Promise<unknown> {
    if (bodyBytes(request) === 0) return {};
    assertType(request, mediaTypes[type]);
    const parseAs = type === 'form' ? parseForm : parse;
    // A small body usually arrives with the head.
    if (request.readableLength === bodyBytes(request) && request.readableLength <= maxBytes) {
      const bytes = request.read() as Buffer;
      request.resume();
      return parseAs(bytes);
    }
    const body = new Body(maxBytes, (bytes) => this.#hold(account, bytes));
    try {
      await this.#receive(request, body);
      return parseAs(body.bytes);
    } finally {
      this.#release(account, body.heldBytes);
    }
  }

  async #receive(request: IncomingMessage, body: Body): Promise<void> {
    if (Number(request.headers['content-length'] ?? 0) > body.maxBytes) throw tooLarge(body.maxBytes);
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const onData = (chunk: Buffer) => {
      const problem = body.add(chunk);
      if (problem) reject(problem);
    };
    let hasEnded = false;
    const onEnd = () => {
      hasEnded = true;
      resolve();
    };
    // Also called after `end`. Creating an error costs more than reading a short body.
    const onCut = () => hasEnded || reject(new BodyError('cut', 'The body was cut off'));
    const onLate = () => reject(new BodyError('too-slow', `The body took longer than ${maxBodyMs / 1000} s to arrive`));
    using _timer = this.#clock.after(maxBodyMs, onLate);
    request.on('data', onData).on('end', onEnd).on('error', onCut).on('close', onCut);
    try {
      if (request.destroyed) onCut();
      await promise;
    } finally {
      request.off('data', onData).off('end', onEnd).off('error', onCut).off('close', onCut).pause();
    }
  }

  #hold(account: string, bytes: number): boolean {
    const held = (this.#heldBytes.get(account) ?? 0) + bytes;
    if (held > maxAccountBytes || this.#totalBytes + bytes > maxHeldBytes) return false;
    this.#heldBytes.set(account, held);
    this.#totalBytes += bytes;
    return true;
  }

  #release(account: string, bytes: number): void {
    const held = (this.#heldBytes.get(account) ?? 0) - bytes;
    if (held > 0) this.#heldBytes.set(account, held);
    else this.#heldBytes.delete(account);
    this.#totalBytes -= bytes;
  }
}

/** The received part of a body, in one buffer: a million chunks of one byte would take a hundred times the memory. */
class Body {
  readonly maxBytes: number;
  readonly #hold: (bytes: number) => boolean;
  #buffer = Buffer.alloc(0);
  #length = 0;

  constructor(maxBytes: number, hold: (bytes: number) => boolean) {
    this.maxBytes = maxBytes;
    this.#hold = hold;
  }

  get bytes(): Buffer {
    return this.#buffer.subarray(0, this.#length);
  }

  get heldBytes(): number {
    return this.#buffer.length;
  }

  /** Adds a chunk. Returns the problem if the body is too large. */
  add(chunk: Buffer): BodyError | undefined {
    const length = this.#length + chunk.length;
    if (length > this.maxBytes) return tooLarge(this.maxBytes);
    if (length > this.#buffer.length && !this.#grow(length)) {
      return new BodyError('too-many', 'Too many request bodies at the same time, try again in a moment');
    }
    chunk.copy(this.#buffer, this.#length);
    this.#length = length;
    return undefined;
  }

  #grow(leastBytes: number): boolean {
    const size = Math.min(Math.max(leastBytes, 2 * this.#buffer.length), this.maxBytes);
    if (!this.#hold(size - this.#buffer.length)) return false;
    const larger = Buffer.allocUnsafeSlow(size);
    this.#buffer.copy(larger, 0, 0, this.#length);
    this.#buffer = larger;
    return true;
  }
}

function assertType({ headers }: IncomingMessage, expected: string): void {
  const [type = '', ...parameters] = (headers['content-type'] ?? '').toLowerCase().split(';');
  const isExpected = type.trim() === expected;
  const isOtherCharset = parameters.some((each) => /^\s*charset=(?!"?utf-8"?\s*$)/.test(each));
  const isEncoded = (headers['content-encoding'] ?? 'identity').toLowerCase() !== 'identity';
  if (!isExpected || isOtherCharset || isEncoded) {
    throw new BodyError('wrong-type', `Send the body as ${expected} in UTF-8, not compressed`);
  }
}

function parseForm(bytes: Buffer): unknown {
  return Object.fromEntries(new URLSearchParams(bytes.toString('utf8')));
}

/** Shared by all bodies: creating a decoder takes longer than decoding. */
const decoder = new TextDecoder();

function parse(bytes: Buffer): unknown {
  if (bytes.length === 0) return {};
  if (!isUtf8(bytes)) {
    throw new BodyError('malformed', 'The body is not UTF-8; is it cut in the middle of a character?');
  }
  if (depthOf(bytes) > maxDepth) {
    throw new BodyError('malformed', `The body is nested deeper than ${maxDepth} levels`);
  }
  try {
    return JSON.parse(decoder.decode(bytes));
  } catch (error) {
    throw new BodyError('malformed', 'The body is not JSON', { cause: error });
  }
}

/** The nesting depth of the brackets outside strings. */
function depthOf(bytes: Buffer): number {
  let depth = 0;
  let deepest = 0;
  let inString = false;
  for (let i = 0; i < bytes.length; i += 1) {
    const byte = bytes[i];
    if (inString) {
      if (byte === 0x5c) i += 1;
      else if (byte === 0x22) inString = false;
    } else if (byte === 0x22) inString = true;
    else if (byte === 0x7b || byte === 0x5b) deepest = Math.max(deepest, (depth += 1));
    else if (byte === 0x7d || byte === 0x5d) depth -= 1;
  }
  return deepest;
}

function tooLarge(maxBytes: number): BodyError {
  return new BodyError('too-large', `The body is too large, send at most ${sizeText(maxBytes)}`);
}
