/** Reads JSON bodies and forms within limits of size, time, and total memory. */
import { isUtf8 } from 'node:buffer';
import type { IncomingMessage } from 'node:http';
import type { Clock } from '../clock/clock.ts';
import { sizeText } from '../text/size-text.ts';
import { BodyMemory } from './body-memory.ts';
import type { Full } from './body-memory.ts';
import { bodyBytes } from './linger.ts';
import { CodedError } from '../errors/coded-error.ts';

/** The maximum time for a body. At half a megabit per second, 1 MiB arrives in this time. */
const maxBodyMs = 20_000;

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
  readonly #memory = new BodyMemory();

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
    if (Number(request.headers['content-length'] ?? 0) > maxBytes) throw fullError('too-large', maxBytes);
    using body = this.#memory.begin(account, maxBytes);
    await this.#receive(request, (chunk) => {
      const full = body.add(chunk);
      return full && fullError(full, maxBytes);
    });
    return parseAs(body.bytes);
  }

  /** Passes the chunks of a body to `add` until the end, or until `add` returns an error. */
  async #receive(request: IncomingMessage, add: (chunk: Buffer) => BodyError | undefined): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const onData = (chunk: Buffer) => {
      const problem = add(chunk);
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
    throw new BodyError('malformed', 'The body is not valid UTF-8, send the whole body in UTF-8');
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

function fullError(full: Full, maxBytes: number): BodyError {
  const message = {
    'too-large': `The body is too large, send at most ${sizeText(maxBytes)}`,
    'too-many': 'Too many request bodies at the same time, try again in a moment',
  };
  return new BodyError(full, message[full]);
}
