import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { connect } from 'node:net';
import { connect as secure } from 'node:tls';
import type { TLSSocket } from 'node:tls';
import { request as send } from '../http/node-http.ts';
import { linkIdentity, linkKey, linkSocketTerms, linkTerms } from './link-terms.ts';
import type { PlatformSecret } from '../secret/platform-secret.ts';

export interface LinkTarget {
  readonly secret: PlatformSecret;
  readonly host: string;
  readonly port: number;
  /** Aborts the handshake. It has no effect on an established link. */
  readonly signal: AbortSignal;
}

/**
 * Opens a link: an encrypted and authenticated connection to a process with the same secret. Like any connection it ends its side
 * when the other side has ended, unless `allowHalfOpen` is set on it.
 *
 * Rejects with the signal's reason, or with the error of the connection or the handshake.
 */
export async function linkConnect({ secret, host, port, signal }: LinkTarget): Promise<TLSSocket> {
  signal.throwIfAborted();
  const connection = connect({ host, port, ...linkSocketTerms });
  // The link reports its errors.
  connection.on('error', () => {});
  const onAbort = () => void connection.destroy(signal.reason as Error);
  signal.addEventListener('abort', onAbort, { once: true });
  try {
    await once(connection, 'connect');
    const link = secure({
      ...linkTerms,
      socket: connection,
      pskCallback: () => ({ psk: linkKey(secret), identity: linkIdentity }),
      // No certificate is accepted: the shared secret alone authenticates.
      ca: [],
      checkServerIdentity: () =>
        new Error('The server presents a certificate instead of proving that it has the secret'),
    });
    await once(link, 'secureConnect');
    return link;
  } catch (error) {
    connection.destroy();
    throw signal.aborted ? (signal.reason as Error) : error;
  } finally {
    signal.removeEventListener('abort', onAbort);
  }
}

/**
 * Sends a GET request to another process over a new link. Resolves when the head of the answer has arrived; the link closes with the
 * answer, or when the answer is destroyed. Rejects as `linkConnect`.
 *
 * @param host - the node that should answer: the address may belong to another node by now
 */
export async function linkGet(target: LinkTarget, host: string, path: string): Promise<IncomingMessage> {
  const link = await linkConnect(target);
  const request = send({ path, headers: { host }, createConnection: () => link });
  // The answer reports later errors.
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
