/** Reads the heads of the requests of one connection. */
import { RepeatedHead } from './repeated-head.ts';
import { isStartOfPlainHead, readRequestHead } from './request-head.ts';
import type { PlainRequest } from './request-head.ts';

/** Longer heads are rare, and Node's HTTP server limits them. */
const maxHeadBytes = 16 * 1024;

/** A head that arrives in more parts is read by Node's HTTP server, which does not start again with each part. */
const maxHeadParts = 16;

const headEnd = Buffer.from('\r\n\r\n');

export class HeadReader {
  readonly #repeated = new RepeatedHead();
  /** How many parts of an unfinished head have arrived. */
  #parts = 0;
  /** The length of the head that was read last. */
  headBytes = 0;

  /** Reads the head at the start of bytes. `unfinished`: more of it must arrive. `undefined`: it is not plain. */
  read(bytes: Buffer): PlainRequest | 'unfinished' | undefined {
    const repeated = bytes.length <= maxHeadBytes ? this.#repeated.read(bytes) : undefined;
    if (repeated) {
      this.#parts = 0;
      this.headBytes = bytes.length;
      return repeated;
    }
    const end = bytes.indexOf(headEnd);
    if (end > maxHeadBytes) return undefined;
    if (end < 0) return this.#isStart(bytes) ? 'unfinished' : undefined;
    this.#parts = 0;
    this.headBytes = end + headEnd.length;
    const request = readRequestHead(bytes.toString('latin1', 0, this.headBytes));
    if (request) this.#repeated.keep(request, bytes.subarray(0, this.headBytes));
    return request;
  }

  #isStart(bytes: Buffer): boolean {
    this.#parts += 1;
    if (bytes.length > maxHeadBytes || this.#parts > maxHeadParts) return false;
    return isStartOfPlainHead(bytes.toString('latin1'));
  }
}
