// Takes about 5 s
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { readdirSync } from 'node:fs';
import { Agent, request as send } from 'node:http';
import type { IncomingMessage } from 'node:http';
import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { expect, test } from 'vitest';
import { proxyErrorHeader } from '../../contract/proxy-errors.ts';
import { ManualClock } from '../../core/clock/testing/manual-clock.ts';
import { openLog } from '../../core/log/log.ts';
import { PlatformSecret } from '../../core/secret/platform-secret.ts';
import { backends, becomeReady } from '../../model/backend.ts';
import {
  connected,
  exchangeBytes,
  gathered,
  makeEnded,
  openFixture,
  spawn,
  startMirror,
  startProgram,
  startRawProgram,
  until,
} from '../testing/fixture.ts';
import type { Fixture, Program, Session } from '../testing/fixture.ts';
import { startNode, insertNode } from '../testing/node.ts';
import type { TestNode } from '../testing/node.ts';
import { gatherMs } from '../connections.ts';
import { connectLimitMs } from './dial.ts';
import { endedGraceMs } from './pools.ts';

async function spawnOn(fixture: Fixture, node: TestNode, at: Pick<Program, 'address'>): Promise<Session> {
  const session = await spawn(fixture);
  await node.adopt(session.backend, at);
  return session;
}

/** A backend of a node that exists only in the store. */
async function spawnAt(fixture: Fixture, node: string, { address }: Pick<Program, 'address'>): Promise<Session> {
  const session = await spawn(fixture);
  await fixture.store.update(backends, session.backend, (backend) =>
    becomeReady({ ...backend, node }, address, new Date()),
  );
  return session;
}

async function ask(fixture: Fixture, token: string): Promise<{ status: number; error: string | null }> {
  const response = await fetch(`${fixture.url}/${token}/`);
  await response.arrayBuffer();
  return { status: response.status, error: response.headers.get(proxyErrorHeader) };
}

const unreachable = { status: 502, error: 'backend-unreachable' };
const reached = { status: 200, error: null };

test('a thousand requests share a few tunnels and leave none open', async () => {
  await using fixture = await openFixture();
  await using node = await startNode(fixture);
  await using program = await startProgram((request, response) => {
    void gathered(request).then((body) => response.end(body));
  });
  const { token, backend } = await spawnOn(fixture, node, program);
  const before = openFiles();
  const agent = new Agent({ keepAlive: true, maxSockets: 16 });
  let left = 1000;
  const client = async () => {
    while (left-- > 0) expect(await echo(`${fixture.url}/${token}/`, agent)).toBe('hello');
  };
  await Promise.all(Array.from({ length: 16 }, client));
  expect(program.connections()).toBeLessThanOrEqual(17);
  expect(openFiles()).toBeGreaterThan(before);
  agent.destroy();
  await makeEnded(fixture, backend);
  await until(() => openFiles() <= before);
});

test('consecutive requests use one tunnel, which is closed when it is idle', async () => {
  await using fixture = await openFixture();
  await using node = await startNode(fixture);
  await using mirror = await startMirror();
  const { token } = await spawnOn(fixture, node, mirror);
  const before = openFiles();
  for (let i = 0; i < 5; i += 1) {
    await exchangeBytes(fixture.port, `GET /${token}/ HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n`);
  }
  expect(mirror.connections()).toBe(1);
  await until(() => openFiles() <= before);
});

test('the proxy finds the gateway of a restarted worker on another port at once', async () => {
  await using fixture = await openFixture();
  const old = await startNode(fixture);
  await using mirror = await startMirror();
  const { token, backend } = await spawnOn(fixture, old, mirror);
  expect(await ask(fixture, token)).toEqual(reached);
  await old[Symbol.asyncDispose]();
  expect(await ask(fixture, token)).toEqual(unreachable);
  await using successor = await startNode(fixture);
  await successor.adopt(backend, mirror);
  expect(successor.port).not.toBe(old.port);
  expect(await ask(fixture, token)).toEqual(reached);
});

test('an answer through a gateway that ends is aborted, not completed', async () => {
  await using fixture = await openFixture();
  const node = await startNode(fixture);
  await using program = await startRawProgram((socket) => {
    // Without a length, the end of the connection is the end of the answer.
    socket.write('HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nhalf an answer');
  });
  const { token } = await spawnOn(fixture, node, program);
  const response = await fetch(`${fixture.url}/${token}/`);
  const reader = response.body?.getReader();
  await reader?.read();
  await node[Symbol.asyncDispose]();
  await expect(reader?.read()).rejects.toThrow('terminated');
  await until(() => program.sockets.size === 0);
});

test('a backend that has ended is gone, and its tunnels are closed after a grace period', async () => {
  const clock = new ManualClock();
  await using fixture = await openFixture({ clock });
  await using node = await startNode(fixture);
  await using program = await startRawProgram((socket) => {
    socket.write('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n');
  });
  const { token, backend } = await spawnOn(fixture, node, program);
  const client = await connected(fixture.port);
  client.write(`GET /${token}/ HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n`);
  await once(client, 'data');
  await makeEnded(fixture, backend);
  expect(await ask(fixture, token)).toEqual({ status: 410, error: 'gone' });
  expect(program.sockets.size).toBe(1);
  await clock.advance(endedGraceMs);
  await gathered(client);
  await until(() => program.sockets.size === 0);
});

test('a backend that is unknown to its node is unreachable, and gone when it has ended', async () => {
  await using fixture = await openFixture();
  await using node = await startNode(fixture);
  await using mirror = await startMirror();
  const lost = await spawnAt(fixture, node.id, mirror);
  expect(await ask(fixture, lost.token)).toEqual(unreachable);
  await makeEnded(fixture, lost.backend, { silently: true });
  expect(await ask(fixture, lost.token)).toEqual({ status: 410, error: 'gone' });
  expect(mirror.connections()).toBe(0);
});

test('a container that accepts no connection is unreachable', async () => {
  await using fixture = await openFixture();
  await using node = await startNode(fixture);
  const { token, backend } = await spawnOn(fixture, node, { address: { host: '127.0.0.1', port: 1 } });
  expect(await ask(fixture, token)).toEqual(unreachable);
  const got = await exchangeBytes(fixture.port, upgrade(token));
  expect(got).toMatch(/^HTTP\/1\.1 502 /);
  await until(() => fixture.reports.at(-1)?.[backend] === undefined);
});

test('a gateway with another secret is not used', async () => {
  await using fixture = await openFixture();
  await using node = await startNode(fixture, { secret: new PlatformSecret(randomBytes(32)) });
  await using mirror = await startMirror();
  const { token } = await spawnOn(fixture, node, mirror);
  expect(await ask(fixture, token)).toEqual(unreachable);
  expect(mirror.connections()).toBe(0);
});

test('a request gets 503 if the proxy cannot read the node from the store', async () => {
  await using fixture = await openFixture({ localNode: undefined });
  await using mirror = await startMirror();
  const { token } = await spawnAt(fixture, 'node-1', mirror);
  const get = fixture.store.get.bind(fixture.store);
  fixture.store.get = (collection, id) =>
    collection.name === 'nodes' ? Promise.reject(new Error('away')) : get(collection, id);
  expect(await ask(fixture, token)).toEqual({ status: 503, error: 'unavailable' });
  fixture.store.get = get;
  expect(await ask(fixture, token)).toEqual(reached);
});

test('backends of the local node are reached directly, those of other nodes only through their gateway', async () => {
  const { log, reports } = gatherWarnings();
  await using fixture = await openFixture({ localNode: 'node-1', log });
  await using mirror = await startMirror();
  await insertNode(fixture, { id: 'node-1', gateway: { host: '127.0.0.1', port: 1 } });
  await insertNode(fixture, { id: 'node-2' });
  const here = await spawnAt(fixture, 'node-1', mirror);
  const there = await spawnAt(fixture, 'node-2', mirror);
  expect(await ask(fixture, here.token)).toEqual(reached);
  expect(reports).toEqual([]);
  expect(await ask(fixture, there.token)).toEqual(unreachable);
  expect(await ask(fixture, there.token)).toEqual(unreachable);
  expect(mirror.connections()).toBe(1);
  // Logged once for several requests.
  expect(reports).toEqual([
    { node: 'node-2', msg: expect.stringContaining('set BERTH_ADVERTISED_HOST on it') as string },
  ]);
});

test('without a local node, the proxy connects directly to a node without a gateway', async () => {
  await using fixture = await openFixture({ localNode: undefined });
  await using mirror = await startMirror();
  await insertNode(fixture, { id: 'node-1' });
  const { token } = await spawnAt(fixture, 'node-1', mirror);
  expect(await ask(fixture, token)).toEqual(reached);
  const got = await exchangeBytes(fixture.port, upgrade(token));
  expect(got).toMatch(/^HTTP\/1\.1 200 /);
  expect(mirror.connections()).toBe(2);
});

test('a warning names the missing setting if that node is on another machine', async () => {
  const { log, reports } = gatherWarnings();
  await using fixture = await openFixture({ localNode: undefined, log });
  await insertNode(fixture, { id: 'node-1' });
  // No backend of this machine listens there.
  const { token } = await spawnAt(fixture, 'node-1', { address: { host: '127.0.0.1', port: 1 } });
  expect(await ask(fixture, token)).toEqual(unreachable);
  expect(reports).toEqual([
    { node: 'node-1', msg: expect.stringContaining('set BERTH_ADVERTISED_HOST on it') as string },
  ]);
});

test.each(['plain', 'upgrade'])(
  'a gateway that does not answer: %s clients can disconnect, others get 502',
  async (kind) => {
    const clock = new ManualClock();
    await using fixture = await openFixture({ clock });
    let open = 0;
    const silent = createServer((socket) => {
      open += 1;
      socket.resume().once('close', () => (open -= 1));
    });
    await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve));
    const { port } = silent.address() as AddressInfo;
    await insertNode(fixture, { id: 'node-1', gateway: { host: '127.0.0.1', port } });
    await using mirror = await startMirror();
    const { token, backend } = await spawnAt(fixture, 'node-1', mirror);
    const request = kind === 'plain' ? `GET /${token}/ HTTP/1.1\r\nHost: a\r\n\r\n` : upgrade(token);
    const leaving = await connected(fixture.port);
    leaving.write(request);
    await until(() => open === 1);
    leaving.destroy();
    await until(async () => {
      await clock.advance(gatherMs);
      return open === 0 && fixture.reports.at(-1)?.[backend] === undefined;
    });
    const staying = await connected(fixture.port);
    staying.write(request);
    await until(() => open === 1);
    await clock.advance(connectLimitMs);
    const [answer] = (await once(staying, 'data')) as [Buffer];
    expect(answer.toString()).toMatch(/^HTTP\/1\.1 502 /);
    await until(() => open === 0);
    staying.destroy();
    silent.close();
  },
);

function upgrade(token: string): string {
  return `GET /${token}/ HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n`;
}

function gatherWarnings() {
  const reports: object[] = [];
  const write = (line: string) => {
    const { node, msg } = JSON.parse(line) as { node?: string; msg: string };
    reports.push({ node, msg });
  };
  return { log: openLog('warn', { write }), reports };
}

function openFiles(): number {
  return readdirSync('/proc/self/fd').length;
}

async function echo(url: string, agent: Agent): Promise<string> {
  const request = send(url, { method: 'POST', agent });
  request.end('hello');
  const [response] = (await once(request, 'response')) as [IncomingMessage];
  return await gathered(response);
}
