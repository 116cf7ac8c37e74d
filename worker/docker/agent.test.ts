import { once } from 'node:events';
import { createServer, get } from 'node:http';
import type { AddressInfo } from 'node:net';
import { inspect } from 'node:util';
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
