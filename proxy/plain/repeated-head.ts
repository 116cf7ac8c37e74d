/**
 * Most clients send the same head with each request on a connection, byte for byte, except for the target. Such a head is compared with
 * the last one instead of parsed: parsing the headers of a browser takes as long as everything else that the proxy does with a request.
 */
import { isPlainTarget } from './request-head.ts';
import type { PlainRequest } from './request-head.ts';

/** The head that was read last on a connection. */
export class RepeatedHead {
  #head: Buffer | undefined;
  #request: PlainRequest | undefined;
  /** Where its target ends. The rest is the same in every head that repeats it. */
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

  /** The request with this head, if it differs from the kept one at most in its target. Equal bytes return the same object. */
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
