/** Clients that connect at the same time, as a browser does for a page, each for one request. */
import { once } from 'node:events';
import { connect } from 'node:net';
import type { Socket } from 'node:net';

/** Opens connections at once, again and again. Returns how many had an answer, and how long it took until the last of each time had it. */
export async function newConnections(
  url: URL,
  { connections, seconds }: { connections: number; seconds: number },
): Promise<{ requests: number; took: number }> {
  const endMs = performance.now() + seconds * 1000;
  let requests = 0;
  let tookMs = 0;
  while (performance.now() < endMs) {
    const startedMs = performance.now();
    const sockets = await Promise.all(Array.from({ length: connections }, async () => await answered(url)));
    tookMs += performance.now() - startedMs;
    requests += connections;
    // Closed in order, so many connections would use up the ports of this machine.
    for (const socket of sockets) socket.resetAndDestroy();
    await Promise.all(sockets.map(async (socket) => await once(socket, 'close')));
  }
  return { requests, took: tookMs / 1000 };
}

/** A connection whose first request was answered. */
async function answered({ hostname, port, pathname }: URL): Promise<Socket> {
  const socket = connect({ host: hostname, port: Number(port), noDelay: true });
  socket.write(`GET ${pathname} HTTP/1.1\r\nHost: ${hostname}\r\n\r\n`);
  const [answer] = (await once(socket, 'data')) as [Buffer];
  if (!answer.toString('latin1').startsWith('HTTP/1.1 200')) throw new Error(`Not answered:\n${answer.toString()}`);
  return socket;
}
