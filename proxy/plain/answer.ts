/** Reads the answer of a backend, and writes it to the client. */
import { maxInterimAnswers } from '../forward/answer-limits.ts';
import { isForwardedInterim } from '../forward/interim.ts';
import { InvalidAnswer } from './answer-head.ts';
import type { Framing } from './answer-head.ts';
import type { AnswerHeads, ReadHead } from './answer-heads.ts';
import { LengthBody, UnboundedBody, lastChunk } from './body.ts';
import type { Body } from './body.ts';
import { maxShortBytes, nothing } from './channel.ts';
import type { Channel } from './channel.ts';
import { ChunkedBody } from './chunked-body.ts';
import type { SentError } from './error-answer.ts';
import type { PlainRequest } from './request-head.ts';

/** Request heads have the same limit (`main/threads/serve-proxy.ts`). */
const maxHeadBytes = 64 * 1024;

const lineFeed = 10;

const carriageReturn = 13;

/** The end of a head. */
const keepAliveEnd = 'Connection: keep-alive\r\nKeep-Alive: timeout=65\r\n\r\n';
const closeEnd = 'Connection: close\r\n\r\n';

interface AnswerParts {
  readonly heads: AnswerHeads;
  readonly client: Channel;
  /** Whether the proxy closes: a client must not send another request on its connection. */
  readonly isClosing: () => boolean;
}

export class Answer {
  readonly #request: PlainRequest;
  readonly #heads: AnswerHeads;
  readonly #client: Channel;
  /** The beginning of a head whose end has not arrived. */
  #head: Buffer | undefined;
  #body: Body | undefined;
  #interim = 0;
  #keepsAlive = false;
  #hasSurplus = false;
  #isLast: boolean;
  readonly #isClosing: () => boolean;
  /** The status that the client has received. */
  status: number | undefined;
  /** Whether the backend has sent anything. */
  hasBegun = false;
  isComplete = false;

  constructor(request: PlainRequest, { heads, client, isClosing }: AnswerParts) {
    this.#request = request;
    this.#heads = heads;
    this.#client = client;
    this.#isLast = request.isLast;
    this.#isClosing = isClosing;
  }

  /** Whether the backend's connection can be used again, once the answer is complete. */
  get isReusable(): boolean {
    return this.#keepsAlive && !this.#hasSurplus;
  }

  /** Whether the client's head announces that its connection closes. */
  get isLast(): boolean {
    return this.#isLast;
  }

  /** Reads bytes of the backend's connection, and writes to the client. Throws if the answer is not valid. */
  read(bytes: Buffer, backend: Channel): void {
    this.hasBegun = true;
    const rest = this.status === undefined ? this.#readHeads(bytes) : bytes;
    if (rest.length > 0) this.#readBody(rest, backend);
  }

  /** Ends the answer with the backend's connection. Returns whether its body is framed that way. */
  endWithConnection(): boolean {
    if (!(this.#body instanceof UnboundedBody)) return false;
    this.#client.write(lastChunk);
    this.isComplete = true;
    return true;
  }

  /** Replaces the backend's answer by an error of the proxy. */
  replaceWith({ status, isLast }: SentError): void {
    this.status = status;
    this.#isLast = isLast;
  }

  /** Reads interim heads and the head. Returns the bytes that are not sent yet. */
  #readHeads(bytes: Buffer): Buffer {
    let all = this.#head ? Buffer.concat([this.#head, bytes]) : bytes;
    this.#head = undefined;
    while (all.length > 0) {
      const textBytes = all.length <= maxShortBytes ? all.length : Math.min(endOfHead(all), maxHeadBytes);
      const head = this.#heads.read(all, this.#request.method, textBytes);
      if (!head) {
        this.#keepUnfinished(all);
        break;
      }
      if (head.status >= 200) return this.#sendHead(head, all);
      this.#sendInterim(head);
      all = all.subarray(head.end);
    }
    return nothing;
  }

  /** Keeps the beginning of a head until more of it arrives. */
  #keepUnfinished(bytes: Buffer): void {
    if (bytes.length > maxHeadBytes) throw new InvalidAnswer('The head of the answer is too long');
    if (endOfHead(bytes) >= 0) throw new InvalidAnswer('The head of the answer is not valid');
    this.#head = Buffer.from(bytes);
  }

  #sendInterim({ status, text }: ReadHead): void {
    this.#interim += 1;
    if (status === 101) throw new InvalidAnswer('The backend switches protocols without being asked');
    if (this.#interim > maxInterimAnswers) throw new InvalidAnswer('The backend sends too many interim answers');
    if (isForwardedInterim(status)) this.#client.write(`${text}\r\n`);
  }

  /** Sends the head, with a short body in the same packet. Returns the bytes that are not sent yet. */
  #sendHead({ end, status, text, framing, keepsAlive }: ReadHead, all: Buffer): Buffer {
    this.#keepsAlive = keepsAlive;
    this.status = status;
    if (this.#isClosing()) this.#isLast = true;
    const isChunked = framing === 'chunked' || framing === 'until-close';
    const head = `${text}${isChunked ? 'Transfer-Encoding: chunked\r\n' : ''}${this.#isLast ? closeEnd : keepAliveEnd}`;
    const restBytes = all.length - end;
    if (typeof framing === 'object' && framing.length === restBytes && restBytes <= maxShortBytes) {
      this.#client.write(head + all.toString('latin1', end));
      this.isComplete = true;
      return nothing;
    }
    this.#body = bodyOf(framing);
    if (!this.#body) {
      this.#client.write(head);
      this.#end(restBytes);
      return nothing;
    }
    const rest = all.subarray(end);
    if (rest.length > maxShortBytes) {
      this.#client.write(head);
      return rest;
    }
    const parts: Buffer[] = [];
    const used = this.#body.read(rest, (part) => parts.push(part));
    this.#client.writeWith(head, parts);
    if (this.#body.isComplete) this.#end(rest.length - used);
    return nothing;
  }

  #readBody(bytes: Buffer, backend: Channel): void {
    if (this.isComplete || !this.#body) {
      this.#hasSurplus = true;
      return;
    }
    const used = this.#body.read(bytes, (part) => backend.pass(part, this.#client));
    if (this.#body.isComplete) this.#end(bytes.length - used);
  }

  #end(surplusBytes: number): void {
    this.isComplete = true;
    if (surplusBytes > 0) this.#hasSurplus = true;
  }
}

function bodyOf(framing: Framing): Body | undefined {
  if (framing === 'none' || (typeof framing === 'object' && framing.length === 0)) return undefined;
  if (framing === 'until-close') return new UnboundedBody();
  return framing === 'chunked' ? new ChunkedBody({ isLenient: true }) : new LengthBody(framing.length);
}

/** The end of the head, with the empty line, which may consist of a bare LF; -1 if it is not there. */
function endOfHead(bytes: Buffer): number {
  for (let at = bytes.indexOf(lineFeed); at >= 0; at = bytes.indexOf(lineFeed, at + 1)) {
    if (bytes[at + 1] === lineFeed) return at + 2;
    if (bytes[at + 1] === carriageReturn && bytes[at + 2] === lineFeed) return at + 3;
  }
  return -1;
}
