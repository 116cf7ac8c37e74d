import { once } from 'node:events';
import { createServer, get } from 'node:http';
import type { ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { inspect } from 'node:util';
import Docker from 'dockerode';
import { expect, test } from 'vitest';
import { newEngineAgent } from './agent.ts';

test('keeps connections open, and does not format them for a debug log', async () => {
  const server = createServer((_request, response) => response.end()).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const agent = newEngineAgent();
  try {
    for (let i = 0; i < 2; i++) {
      const [response] = (await once(get({ port, host: '127.0.0.1', agent }), 'response')) as [NodeJS.ReadableStream];
      response.resume();
      await once(response, 'end');
      await expect.poll(() => Object.values(agent.freeSockets).flat().length).toBe(1);
    }
    expect(inspect({ agent }, { showHidden: true, depth: null })).toBe('{ agent: EngineAgent }');
  } finally {
    agent.destroy();
    server.close();
  }
});

test.each([
  ['dies', (response: ServerResponse) => void response.socket?.destroy()],
  ['is silent', () => {}],
])('a call fails if the engine %s in the middle of an answer', async (_what, then) => {
  const server = createServer((_request, response) => {
    response.writeHead(200, { 'content-type': 'application/json', 'content-length': 1_000 });
    response.write('[', () => then(response));
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const agent = newEngineAgent();
  const options: Docker.DockerOptions & { agent: typeof agent } = {
    protocol: 'http',
    host: '127.0.0.1',
    port,
    timeout: 200,
    agent,
  };
  try {
    await expect(new Docker(options).listContainers()).rejects.toMatchObject({ code: 'ECONNRESET' });
  } finally {
    agent.destroy();
    server.closeAllConnections();
    server.close();
  }
});
