import { once } from 'node:events';
import { request as send } from 'node:http';
import type { IncomingMessage } from 'node:http';
import { linkConnect } from './link-connect.ts';
import type { LinkTarget } from './link-connect.ts';

/**
 * Asks, by a link of its own, for what another process has under a path. Resolves when the head of the answer is here; the
 * link ends with the answer, or when that is destroyed. Rejects as `linkConnect`.
 *
 * @param host - for whom the question is: the other end may be somebody else than was thought
 */
export async function linkGet(target: LinkTarget, host: string, path: string): Promise<IncomingMessage> {
  const link = await linkConnect(target);
  const request = send({ path, headers: { host }, createConnection: () => link });
  // What breaks it later comes up in the answer.
  request.on('error', () => {});
  request.end();
  try {
    const [answer] = (await once(request, 'response', { signal: target.signal })) as [IncomingMessage];
    return answer;
  } catch (error) {
    link.destroy();
    throw target.signal.aborted ? (target.signal.reason as Error) : error;
  }
}
