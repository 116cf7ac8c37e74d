/**
 * Most clients repeat themselves: of two requests on a connection, all but the target is the same, byte for byte. Such a request is
 * read by comparing it with the last one: to read the headers of a browser anew takes as long as all else that is done with a request.
 */
import { isPlainTarget } from './request-head.ts';
import type { PlainRequest } from './request-head.ts';

/** The head of the last request of a connection. */
export class RepeatedHead {
  #request: PlainRequest | undefined;
  /** Method and blank. */
  #start = '';
  /** What follows the target, to the end of the head. */
  #rest: Buffer = Buffer.alloc(0);

  /** Keeps a plain request, and its head. */
  keep(request: PlainRequest, head: Buffer): void {
    this.#request = request;
    this.#start = `${request.method} `;
    this.#rest = Buffer.from(head.subarray(this.#start.length + request.target.length));
  }

  /** The request whose head the bytes are, if it differs from the last one in its target alone. */
  read(bytes: Buffer): PlainRequest | undefined {
    const last = this.#request;
    const rest = this.#rest;
    const end = bytes.length - rest.length;
    if (!last || end <= this.#start.length || bytes.compare(rest, 0, rest.length, end) !== 0) return undefined;
    const start = bytes.toString('latin1', 0, end);
    const target = start.slice(this.#start.length);
    if (!start.startsWith(this.#start) || !isPlainTarget(target)) return undefined;
    const { method, lines, checked, headers, body, isLast } = last;
    return { method, target, lines, checked, headers, body, isLast };
  }
}
