/** A client that sends a request when the answer to the one before has arrived. */
import { connect } from 'node:net';
import { systemClock } from '../../core/clock/system-clock.ts';
import { StrictReader } from './strict-reader.ts';
import type { Message } from './strict-reader.ts';

export interface Conversation {
  /** The whole answers, without interim ones. */
  readonly answers: readonly Message[];
  /** What was received of an answer that is not whole. */
  readonly partial: string;
  /** Why the answers have not exactly one reading. */
  readonly problem: string | undefined;
  /** Whether the server has closed the connection. */
  readonly isClosed: boolean;
}

export interface ConversationOptions {
  /** How long an answer may take. */
  readonly limitMs: number;
  /** Between an answer and the next request. */
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
  let onNews = () => {};
  socket.on('error', () => {});
  socket.on('data', (chunk) => {
    reader.push(chunk.toString('latin1'));
    onNews();
  });
  // A reset is no end: a body until the end of the connection would look whole.
  socket.once('end', () => (isWhole = reader.end()));
  socket.once('close', () => {
    isClosed = true;
    onNews();
    resolve();
  });
  for (const [index, request] of requests.entries()) {
    if (isClosed) break;
    socket.write(request, 'latin1');
    await new Promise<void>((done) => {
      const limit = systemClock.after(limitMs, done);
      onNews = () => {
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
