/** Tunnels that connect a link to a container. */
import { connect } from 'node:net';
import type { Socket } from 'node:net';
import { pipeline } from 'node:stream';
import type { Clock } from '../../core/clock/clock.ts';
import { readAfterFailedWrite } from '../../core/http/read-after-failed-write.ts';
import type { IncomingLink } from '../../core/link/link-server.ts';

/** A container on the same machine normally answers at once. Shorter than the time limit of proxies. */
const connectLimitMs = 4_000;

/**
 * How long a half-closed tunnel stays open without traffic. Longer than the limit of proxies, which know the purpose of the
 * connection.
 */
export const halfOpenLimitMs = 60_000;

/** How long a tunnel stays open after its backend has ended: the last bytes of the container may still be on their way. */
export const endedGraceMs = 5_000;

/** Two pipelines and the listeners of this file: a few more than the limit of Node's warning. */
const maxListeners = 24;

export interface TunnelLife {
  readonly clock: Clock;
  /** Aborts when the backend is finalized, or the worker closes. */
  readonly ended: AbortSignal;
  /** Aborts when the worker closes. */
  readonly closing: AbortSignal;
}

/**
 * Connects to a container, answers `200` on the link, and forwards bytes in both directions. Each side may end before the other; an
 * error on one side resets both. Resolves when the tunnel is open or the link is closed; rejects if the container cannot be reached.
 */
export async function openTunnel(
  link: IncomingLink,
  to: { readonly host: string; readonly port: number },
  life: TunnelLife,
): Promise<void> {
  const container = await connected(link.socket, to);
  if (!container) return;
  const cut = () => {
    link.reset();
    if (!container.destroyed) container.resetAndDestroy();
  };
  cutAfterEnd(link.socket, life, cut);
  for (const end of [link.socket, container]) {
    end.setMaxListeners(maxListeners);
    // Before the listeners of the pipelines, which would close the other side as if everything had been sent.
    end.once('error', cut);
  }
  readAfterFailedWrite(link.socket);
  link.socket.write('HTTP/1.1 200 Connection Established\r\n\r\n');
  forward(link.socket, container, cut);
  forward(container, link.socket, cut);
}

/** Connects to the container. Returns `undefined` if the link closes first. */
async function connected(link: Socket, to: { host: string; port: number }): Promise<Socket | undefined> {
  if (link.destroyed) return undefined;
  const { promise, resolve, reject } = Promise.withResolvers<Socket | undefined>();
  const container = readAfterFailedWrite(
    connect({ ...to, allowHalfOpen: true, noDelay: true, timeout: connectLimitMs }),
  );
  const leave = () => {
    resolve(undefined);
    container.destroy();
  };
  const giveUp = () => void container.destroy(new Error('The container does not answer'));
  link.once('close', leave);
  container.once('timeout', giveUp);
  container.on('error', reject);
  container.once('connect', () => {
    container.off('timeout', giveUp);
    container.setTimeout(0);
    resolve(container);
  });
  try {
    return await promise;
  } finally {
    link.off('close', leave);
  }
}

function cutAfterEnd(link: Socket, { clock, ended, closing }: TunnelLife, cut: () => void): void {
  let grace: Disposable | undefined;
  const end = () => {
    if (closing.aborted) cut();
    else grace ??= clock.after(endedGraceMs, cut);
  };
  ended.addEventListener('abort', end, { once: true });
  link.once('close', () => {
    ended.removeEventListener('abort', end);
    grace?.[Symbol.dispose]();
  });
  if (ended.aborted) end();
}

function forward(from: Socket, to: Socket, cut: () => void): void {
  pipeline(from, to, (error) => {
    if (error) cut();
    // Traffic in the other direction restarts the timeout.
    else from.setTimeout(halfOpenLimitMs, cut);
  });
}
