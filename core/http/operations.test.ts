import { once } from 'node:events';
import { get } from 'node:http';
import type { IncomingMessage } from 'node:http';
import { text } from 'node:stream/consumers';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { outerAddress } from '../../test/kit/machine/outer-address.ts';
import { openMetrics } from '../metrics/metrics.ts';
import { newGatedServer } from './gated-server.ts';
import { listen } from './listener.ts';
import type { Listener } from './listener.ts';
import { operationsHandler } from './operations.ts';

const token = 'a-token-of-32-characters-or-more';

const outside = outerAddress();

let listener: Listener;
let isReady: boolean;
beforeEach(async () => {
  isReady = true;
  const store = async () => {
    if (!isReady) throw new Error('The store of 10.0.0.7 is unavailable');
  };
  const tasks = { token: 'of tasks', byName: {}, signal: new AbortController().signal };
  const gate = newGatedServer();
  gate.open({
    handle: operationsHandler({ metrics: openMetrics(), checks: { store }, tasks, host: 'ops.example', token }),
  });
  listener = await listen(gate.server, { host: '0.0.0.0', port: 0 });
});
afterEach(async () => {
  await listener[Symbol.asyncDispose]();
});

async function ask(host: string, path: string, bearer?: string): Promise<{ status: number; text: string }> {
  const headers = bearer === undefined ? {} : { authorization: `Bearer ${bearer}` };
  const answer = await fetch(`http://${host}:${listener.port}${path}`, { headers });
  return { status: answer.status, text: await answer.text() };
}

test('requests from the same machine get all details', async () => {
  expect(await ask('127.0.0.1', '/healthz')).toEqual({ status: 200, text: '{"status":"ok"}' });
  expect(await ask('127.0.0.1', '/readyz')).toEqual({ status: 200, text: '{"status":"ok","checks":{"store":"ok"}}' });
  isReady = false;
  const red = await ask('127.0.0.1', '/readyz');
  expect([red.status, red.text]).toEqual([503, expect.stringContaining('The store of 10.0.0.7 is unavailable')]);
  expect((await ask('127.0.0.1', '/metrics')).text).toContain('process_cpu');
});

test.skipIf(outside === undefined)(
  'a client on another machine without the token receives only whether the process is ready',
  async () => {
    const from = outside ?? '';
    expect(await ask(from, '/healthz')).toEqual({ status: 200, text: '{"status":"ok"}' });
    for (const bearer of [undefined, '', 'wrong', `${token}x`]) {
      isReady = true;
      expect(await ask(from, '/readyz', bearer)).toEqual({ status: 200, text: '{"status":"ok"}' });
      isReady = false;
      expect(await ask(from, '/readyz', bearer)).toEqual({ status: 503, text: '{"status":"error"}' });
      expect((await ask(from, '/metrics', bearer)).status).toBe(401);
      expect((await ask(from, '/tasks/collect', bearer)).status).toBe(401);
    }
  },
);

test.skipIf(outside === undefined)(
  'a client on another machine with the token receives metrics and reasons',
  async () => {
    isReady = false;
    expect((await ask(outside ?? '', '/readyz', token)).text).toContain('10.0.0.7');
    expect((await ask(outside ?? '', '/metrics', token)).text).toContain('process_cpu');
  },
);

describe('on its own machine', () => {
  const askAs = async (host: string, path: string, bearer?: string) => {
    const headers = { host, ...(bearer !== undefined && { authorization: `Bearer ${bearer}` }) };
    const sent = get({ port: listener.port, host: '127.0.0.1', path, headers, agent: false });
    const [answer] = (await once(sent, 'response')) as [IncomingMessage];
    return { status: answer.statusCode, text: await text(answer) };
  };

  test.each(['localhost', 'LOCALHOST:7103', '127.0.0.1', '127.1.2.3:80', '[::1]:7103', 'ops.example:7103'])(
    'it answers to %s',
    async (host) => {
      expect((await askAs(host, '/metrics')).status).toBe(200);
      expect((await askAs(host, '/readyz')).text).toContain('checks');
    },
  );

  test.each(['attacker.example', 'localhost.attacker.example:7103', '127.0.0.1.attacker.example', '10.0.0.7'])(
    'it rejects requests for the host "%s", except with the token',
    async (host) => {
      for (const path of ['/metrics', '/readyz', '/healthz', '/tasks/collect']) {
        const refused = await askAs(host, path);
        expect([refused.status, refused.text]).toEqual([
          421,
          expect.stringContaining('This listener does not serve this host'),
        ]);
      }
      expect((await askAs(host, '/metrics', token)).text).toContain('process_cpu');
    },
  );
});
