/** Simultaneous connections for one request each, as a browser opens them for a page. */
import { once } from 'node:events';
import { connect } from 'node:net';
import type { Socket } from 'node:net';

/**
 * Repeatedly opens connections at once. Returns the number of answers, and the time until the last answers of each round, in
 * seconds.
 */
export async function newConnections(
  url: URL,
  { connections, seconds }: { connections: number; seconds: number },
): Promise<{ requests: number; tookSeconds: number }> {
  const endMs = performance.now() + seconds * 1000;
  let requests = 0;
  let tookMs = 0;
  while (performance.now() < endMs) {
    const startedMs = performance.now();
    const sockets = await Promise.all(Array.from({ length: connections }, async () => await answered(url)));
    tookMs += performance.now() - startedMs;
    requests += connections;
    // Resets, because so many connections would use up the ports of this machine if they were closed in order.
    for (const socket of sockets) socket.resetAndDestroy();
    await Promise.all(sockets.map(async (socket) => await once(socket, 'close')));
  }
  return { requests, tookSeconds: tookMs / 1000 };
}

/** A connection whose first request was answered. */
async function answered({ hostname, port, pathname }: URL): Promise<Socket> {
  const socket = connect({ host: hostname, port: Number(port), noDelay: true });
  socket.write(`GET ${pathname} HTTP/1.1\r\nHost: ${hostname}\r\n\r\n`);
  const [answer] = (await once(socket, 'data')) as [Buffer];
  if (!answer.toString('latin1').startsWith('HTTP/1.1 200'))
    throw new Error(`Unexpected answer:\n${answer.toString()}`);
  return socket;
}
