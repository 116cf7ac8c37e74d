/** A link that has become a connection to a container. */
import { connect } from 'node:net';
import type { Socket } from 'node:net';
import { pipeline } from 'node:stream';
import type { Clock } from '../../core/clock/clock.ts';
import type { IncomingLink } from '../../core/link/link-server.ts';

/** A container on the same machine answers at once, or its host is in trouble. Shorter than what proxies wait. */
const connectLimitMs = 4_000;

/**
 * A side that has nothing more to say hears the other out for this long, and longer while anything comes. More than proxies
 * give it, who know better what the connection is for.
 */
export const halfOpenLimitMs = 60_000;

/** What a container sent last may still be on its way when its end is known. */
export const endedGraceMs = 5_000;

/** Two pipelines and what this file listens for: a few more than Node's warning allows. */
const maxListeners = 24;

export interface TunnelLife {
  readonly clock: Clock;
  /** Aborts when nothing is left of the backend, or the worker closes. */
  readonly ended: AbortSignal;
  /** Aborts when the worker closes. */
  readonly closing: AbortSignal;
}

/**
 * Connects to a container, says so on the link (`200`), and carries bytes both ways. Each side may end before the other; what
 * breaks on one breaks on the other. Resolves when the tunnel stands, or whoever wanted it has left; rejects if the container
 * cannot be reached.
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
  cutAtTheEnd(link.socket, life, cut);
  for (const end of [link.socket, container]) {
    end.setMaxListeners(maxListeners);
    // Before the pipelines hear of it: they would close the other side as if all had been said.
    end.once('error', cut);
  }
  link.socket.write('HTTP/1.1 200 Connection Established\r\n\r\n');
  carry(link.socket, container, cut);
  carry(container, link.socket, cut);
}

/** A connection to the container; `undefined` if the link is gone before. */
async function connected(link: Socket, to: { host: string; port: number }): Promise<Socket | undefined> {
  if (link.destroyed) return undefined;
  const { promise, resolve, reject } = Promise.withResolvers<Socket | undefined>();
  const container = connect({ ...to, allowHalfOpen: true, noDelay: true, timeout: connectLimitMs });
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

function cutAtTheEnd(link: Socket, { clock, ended, closing }: TunnelLife, cut: () => void): void {
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

function carry(from: Socket, to: Socket, cut: () => void): void {
  pipeline(from, to, (error) => {
    if (error) cut();
    // What still comes the other way renews the time.
    else from.setTimeout(halfOpenLimitMs, cut);
  });
}
