/**
 * The heads of the answers to one client in one session. A client that repeats a request often receives the same head,
 * byte for byte: such a head is compared with the last one instead of read, which costs a twentieth of a small request.
 */
import { reasonOf } from '../forward/relay.ts';
import type { SessionView } from '../session-view.ts';
import { readAnswerHead } from './answer-head.ts';
import type { AnswerHead } from './answer-head.ts';

/** A head that was read. */
export interface ReadHead extends Pick<AnswerHead, 'end' | 'status' | 'framing' | 'keepsAlive'> {
  /** The head for the client, without the lines about its connection and the empty line. */
  readonly text: string;
}

/** The head of an answer as received, and as read. */
interface LastHead {
  readonly method: string;
  readonly received: Buffer;
  readonly head: ReadHead;
}

export class AnswerHeads {
  readonly #view: SessionView;
  #last: LastHead | undefined;

  constructor(view: SessionView) {
    this.#view = view;
  }

  /** Reads the head at the start of bytes, as `readAnswerHead`. The head ends within `maxBytes`. */
  read(bytes: Buffer, method: string, maxBytes: number): ReadHead | undefined {
    const last = this.#last;
    if (last && last.method === method && startsWith(bytes, last.received)) return last.head;
    const read = readAnswerHead(bytes.toString('latin1', 0, maxBytes), method, this.#view);
    if (!read) return undefined;
    const { end, status, lines, framing, keepsAlive } = read;
    const head = { end, status, framing, keepsAlive, text: `HTTP/1.1 ${status} ${reasonOf(status)}\r\n${lines}` };
    if (!read.isConstant) return head;
    // A flat copy: V8 would copy joined strings part by part with each answer, and keep the whole text in memory.
    const text = Buffer.from(head.text, 'latin1').toString('latin1');
    this.#last = { method, received: Buffer.from(bytes.subarray(0, end)), head: { ...head, text } };
    return head;
  }
}

function startsWith(bytes: Buffer, start: Buffer): boolean {
  return bytes.length >= start.length && bytes.compare(start, 0, start.length, 0, start.length) === 0;
}
