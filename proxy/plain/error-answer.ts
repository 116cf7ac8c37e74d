import type { ProxyErrorCode } from '../../contract/proxy-errors.ts';
import { errorAnswer } from '../errors.ts';
import { reasonOf } from '../forward/relay.ts';
import type { Channel } from './channel.ts';
import type { PlainRequest } from './request-head.ts';

interface Failed {
  readonly code: ProxyErrorCode;
  readonly id: string;
  /** Whether the client can send another request: it may not wait for this answer with the rest of the body. */
  readonly isComplete: boolean;
}

/** The proxy's own answer, as the client received it. */
export interface SentError {
  readonly status: number;
  /** Whether the answer announces that its connection closes. */
  readonly isLast: boolean;
}

/** Answers a plain request with an error of the proxy. */
export function sendError(client: Channel, { method, headers }: PlainRequest, { code, ...failed }: Failed): SentError {
  const answer = errorAnswer(code, { ...failed, accept: headers.accept });
  const lines = Object.entries(answer.headers).map(([name, value]) => `${name}: ${value}\r\n`);
  const { status } = answer;
  client.write(`HTTP/1.1 ${status} ${reasonOf(status)}\r\n${lines.join('')}\r\n`);
  if (method !== 'HEAD') client.writeBytes(Buffer.from(answer.body));
  return { status, isLast: answer.headers['connection'] === 'close' };
}
