import { once } from 'node:events';
import { request as send } from 'node:http';
import type { IncomingMessage } from 'node:http';
import { connect } from 'node:net';
import { connect as secure } from 'node:tls';
import type { TLSSocket } from 'node:tls';
import { linkIdentity, linkKey, linkSocketTerms, linkTerms } from './link-terms.ts';
import type { PlatformSecret } from '../secret/platform-secret.ts';

export interface LinkTarget {
  readonly secret: PlatformSecret;
  readonly host: string;
  readonly port: number;
  /** Gives up while the link is being made; it does nothing to one that stands. */
  readonly signal: AbortSignal;
}

/**
 * Makes a link: a connection that nobody reads or changes on the way, to a process that has the same secret. Like any
 * connection it ends its side when the other one has ended, unless `allowHalfOpen` is set on it.
 *
 * Rejects with the signal's reason, or with what the connection or the handshake failed of.
 */
export async function linkConnect({ secret, host, port, signal }: LinkTarget): Promise<TLSSocket> {
  signal.throwIfAborted();
  const connection = connect({ host, port, ...linkSocketTerms });
  // What breaks it comes up in the link.
  connection.on('error', () => {});
  const giveUp = () => void connection.destroy(signal.reason as Error);
  signal.addEventListener('abort', giveUp, { once: true });
  try {
    await once(connection, 'connect');
    const link = secure({
      ...linkTerms,
      socket: connection,
      pskCallback: () => ({ psk: linkKey(secret), identity: linkIdentity }),
      // A certificate proves nothing here, whoever signed it.
      ca: [],
      checkServerIdentity: () => new Error('The other end shows a certificate instead of the secret'),
    });
    await once(link, 'secureConnect');
    return link;
  } catch (error) {
    connection.destroy();
    throw signal.aborted ? (signal.reason as Error) : error;
  } finally {
    signal.removeEventListener('abort', giveUp);
  }
}

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
