import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import Docker from 'dockerode';
import { expect, test } from 'vitest';
import { execute } from './executions.ts';

test('a signal that aborts while the engine starts the program ends the wait for it', async () => {
  const stop = new AbortController();
  const server = createServer((request, response) => {
    if (request.url?.endsWith('/start')) {
      stop.abort(new Error('stopped'));
      // The program runs on and prints nothing.
      response.writeHead(200).flushHeaders();
    } else response.writeHead(201, { 'content-type': 'application/json' }).end(JSON.stringify({ Id: 'one' }));
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const docker = new Docker({ protocol: 'http', host: '127.0.0.1', port });
  try {
    const running = execute(docker, 'container', { execution: { command: ['sleep', '60'] }, signal: stop.signal });
    await expect(running).rejects.toThrow('stopped');
  } finally {
    server.closeAllConnections();
    server.close();
  }
});
