/** A client that sends each request after the answer to the previous request. */
import { connect } from 'node:net';
import { systemClock } from '../../core/clock/system-clock.ts';
import { StrictReader } from './strict-reader.ts';
import type { Message } from './strict-reader.ts';

export interface Conversation {
  /** The complete answers, without interim answers. */
  readonly answers: readonly Message[];
  /** The received bytes of an incomplete answer. */
  readonly partial: string;
  /** Why the answers do not have exactly one reading. */
  readonly problem: string | undefined;
  /** Whether the server has closed the connection. */
  readonly isClosed: boolean;
}

export interface ConversationOptions {
  /** Time limit for an answer. */
  readonly limitMs: number;
  /** Runs between an answer and the next request. */
  readonly pause?: () => Promise<void>;
}

/** Sends requests one after another on a connection, until the server closes it. */
export async function converse(
  port: number,
  requests: readonly string[],
  { limitMs, pause }: ConversationOptions,
): Promise<Conversation> {
  const socket = connect(port, '127.0.0.1').setNoDelay();
  const isForHead = () => requests[finalOf(reader).length]?.startsWith('HEAD ') === true;
  const reader = new StrictReader({ kind: 'response', isForHead });
  let isClosed = false;
  let isWhole = true;
  const { promise: closed, resolve } = Promise.withResolvers<void>();
  let onChange = () => {};
  socket.on('error', () => {});
  socket.on('data', (chunk) => {
    reader.push(chunk.toString('latin1'));
    onChange();
  });
  // A reset is not an end: otherwise a body that ends with the connection would look complete.
  socket.once('end', () => (isWhole = reader.end()));
  socket.once('close', () => {
    isClosed = true;
    onChange();
    resolve();
  });
  for (const [index, request] of requests.entries()) {
    if (isClosed) break;
    socket.write(request, 'latin1');
    await new Promise<void>((done) => {
      const limit = systemClock.after(limitMs, done);
      onChange = () => {
        if (!isClosed && finalOf(reader).length <= index && reader.problem === undefined) return;
        limit[Symbol.dispose]();
        done();
      };
    });
    if (!isClosed) await pause?.();
  }
  const wasClosed = isClosed;
  socket.destroy();
  await closed;
  const partial = isWhole && reader.pending === '' ? '' : reader.pending;
  return { answers: finalOf(reader), partial, problem: reader.problem, isClosed: wasClosed };
}

function finalOf({ messages }: StrictReader): Message[] {
  return messages.filter(({ startLine }) => !startLine.startsWith('HTTP/1.1 1'));
}
