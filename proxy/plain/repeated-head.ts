/**
 * Most clients repeat themselves: of two requests on a connection, all but the target is the same, byte for byte. Such a request is
 * read by comparing it with the last one: to read the headers of a browser anew takes as long as all else that is done with a request.
 */
import { isPlainTarget } from './request-head.ts';
import type { PlainRequest } from './request-head.ts';

/** The head of the last request of a connection. */
export class RepeatedHead {
  #request: PlainRequest | undefined;
  /** Method and target. */
  #start = '';
  /** What follows the target, to the end of the head. */
  #rest: Buffer = Buffer.alloc(0);

  /** Keeps a plain request, and its head. */
  keep(request: PlainRequest, head: Buffer): void {
    this.#request = request;
    this.#start = `${request.method} ${request.target}`;
    this.#rest = Buffer.from(head.subarray(this.#start.length));
  }

  /** The request whose head the bytes are, if it differs from the last one in its target at most: the last one, if it is the same. */
  read(bytes: Buffer): PlainRequest | undefined {
    const last = this.#request;
    const rest = this.#rest;
    const end = bytes.length - rest.length;
    if (!last || end <= 0 || bytes.compare(rest, 0, rest.length, end) !== 0) return undefined;
    const start = bytes.toString('latin1', 0, end);
    if (start === this.#start) return last;
    const { method, lines, checked, headers, body, isLast } = last;
    const target = start.slice(method.length + 1);
    if (!start.startsWith(method) || start[method.length] !== ' ' || !isPlainTarget(target)) return undefined;
    this.#start = start;
    this.#request = { method, target, lines, checked, headers, body, isLast };
    return this.#request;
  }
}
