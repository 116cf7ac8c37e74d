/**
 * Most clients repeat themselves: of two requests on a connection, all but the target is the same, byte for byte. Such a request is
 * read by comparing it with the last one: to read the headers of a browser anew takes as long as all else that is done with a request.
 */
import { isPlainTarget } from './request-head.ts';
import type { PlainRequest } from './request-head.ts';

/** The head that was read last on a connection. */
export class RepeatedHead {
  #head: Buffer | undefined;
  #request: PlainRequest | undefined;
  /** Where its target ends. What follows is the same in every head that repeats it. */
  #targetEnd = 0;
  /** The last request that repeated it, with another target. */
  #last: PlainRequest | undefined;

  /** Keeps a plain request, and its head. */
  keep(request: PlainRequest, head: Buffer): void {
    this.#request = request;
    this.#head = Buffer.from(head);
    this.#targetEnd = request.method.length + 1 + request.target.length;
    this.#last = undefined;
  }

  /** The request whose head the bytes are, if it differs from the kept one in its target at most. The same bytes are the same request. */
  read(bytes: Buffer): PlainRequest | undefined {
    const head = this.#head;
    if (!head || !this.#request) return undefined;
    if (bytes.length === head.length && bytes.equals(head)) return this.#request;
    const end = bytes.length - head.length + this.#targetEnd;
    if (end <= 0 || bytes.compare(head, this.#targetEnd, head.length, end) !== 0) return undefined;
    const start = this.#request.method.length + 1;
    for (let i = 0; i < start; i += 1) if (bytes[i] !== head[i]) return undefined;
    return this.#withTarget(bytes.toString('latin1', start, end), this.#request);
  }

  /** The kept request with another target. */
  #withTarget(
    target: string,
    { method, lines, checked, headers, body, isLast }: PlainRequest,
  ): PlainRequest | undefined {
    if (this.#last?.target === target) return this.#last;
    if (!isPlainTarget(target)) return undefined;
    this.#last = { method, target, lines, checked, headers, body, isLast };
    return this.#last;
  }
}
