/** A node for tests of streams: a gateway whose responses the test writes. */
import type { RequestListener } from 'node:http';
import { systemClock } from '../../core/clock/system-clock.ts';
import { newServer } from '../../core/http/listener.ts';
import { openLinkServer } from '../../core/link/link-server.ts';
import { nodes } from '../../model/node.ts';
import type { TestApi } from './test-api.ts';

/** Registers `node-1` on this machine and answers the requests to its gateway with `respond`, until disposed. */
export async function openTestNode(api: TestApi, respond: RequestListener): Promise<AsyncDisposable> {
  const server = newServer();
  server.on('request', respond);
  const onConnection = ({ socket }: { socket: unknown }) => void server.emit('connection', socket);
  const links = await openLinkServer({
    secret: api.secret,
    host: '127.0.0.1',
    port: 0,
    clock: systemClock,
    onConnection,
  });
  await api.store.insert(nodes, {
    id: 'node-1',
    cluster: 'default',
    leaseUntil: new Date(Date.now() + 60_000),
    startedAt: new Date(),
    engineVersion: '28',
    ownMachineGateway: { host: '127.0.0.1', port: links.port },
  });
  return links;
}
