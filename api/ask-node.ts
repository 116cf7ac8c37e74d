import { addAbortSignal } from 'node:stream';
import type { IncomingMessage } from 'node:http';
import { backendStreamPath } from '../contract/backend-streams.ts';
import type { BackendStreamRequest } from '../contract/backend-streams.ts';
import { linkGet } from '../core/link/link-get.ts';
import { nearestGateway, nodes } from '../model/node.ts';
import { ApiError } from '../model/api-error.ts';
import type { Api } from './room.ts';

/** A node answers within milliseconds, an engine in trouble within seconds, and whoever asked can ask again. */
const answerLimitMs = 10_000;

/**
 * Asks a node about one of its backends, through its gateway. The answer ends when all is said, and breaks with the node and with
 * the signal. Throws `Unavailable` if the node does not answer, and `TooManyRequests`.
 */
export async function askNode(
  api: Api,
  node: string,
  question: BackendStreamRequest,
  signal: AbortSignal,
): Promise<IncomingMessage> {
  const gateway = await gatewayOf(api, node);
  const late = new AbortController();
  using _limit = api.clock.after(answerLimitMs, () => late.abort(new Error('The gateway does not answer in time')));
  try {
    const target = { ...gateway, secret: api.secret, signal: AbortSignal.any([signal, late.signal]) };
    const answer = await linkGet(target, node, backendStreamPath(question));
    addAbortSignal(signal, answer);
    if (answer.statusCode === 200) return answer;
    answer.destroy();
    if (answer.statusCode === 429) throw tooMany();
    throw new Error(`The gateway answered ${answer.statusCode}`);
  } catch (error) {
    signal.throwIfAborted();
    throw error instanceof ApiError ? error : away(error);
  }
}

async function gatewayOf({ store }: Api, id: string): Promise<{ host: string; port: number }> {
  const node = await store.get(nodes, id);
  const gateway = node && nearestGateway(node);
  if (!gateway) throw away(new Error(`Nobody knows where the gateway of the node "${id}" is`));
  return gateway;
}

function away(cause: unknown): ApiError {
  return new ApiError('Unavailable', 'The node of this backend does not answer, try again in a moment', { cause });
}

function tooMany(): ApiError {
  return new ApiError('TooManyRequests', 'Too many streams of this backend are open, close one of them');
}
