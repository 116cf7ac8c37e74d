/** Every port on which a process of the platform listens, as the kernel reports them, rejects clients without credentials. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readFile, readdir, readlink } from 'node:fs/promises';
import { connect as connectTcp } from 'node:net';
import { connect as connectTls } from 'node:tls';
import type { Socket } from 'node:net';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { linkConnect } from '../../core/link/link-client.ts';
import { linkIdentity, linkTerms } from '../../core/link/link-terms.ts';
import { PlatformSecret } from '../../core/secret/platform-secret.ts';
import { testEngines } from '../kit/engines/engines.ts';
import { outerAddress } from '../kit/machine/outer-address.ts';
import { testDrivers } from '../kit/servers/drivers.ts';
import { Fixture } from './fixture.ts';

const [engine, otherEngine] = testEngines();
const drivers = testDrivers().find((each) => each !== 'embedded');

/** The bridges of the engine have such addresses. */
const otherAddress = outerAddress();

/** The listeners of each process. */
const listenersOf = {
  registry: ['operations', 'registry'],
  api: ['api', 'operations'],
  proxy: ['operations', 'proxy'],
  worker2: ['gateway', 'operations'],
  // Without BERTH_ADVERTISED_HOST the gateway listens on loopback only.
  worker: ['gateway', 'operations'],
} as const;

type Name = keyof typeof listenersOf;
const names = Object.keys(listenersOf) as Name[];

describe.skipIf(!engine || !drivers)('a process of every role', () => {
  let fixture: Fixture;
  beforeAll(async () => {
    if (!engine || !drivers) return;
    const settings = { BERTH_OPERATIONS_HOST: '0.0.0.0' };
    fixture = await Fixture.open({ engine, drivers, twinsOn: otherEngine ?? engine, only: names }, settings);
  });
  afterAll(() => fixture?.[Symbol.asyncDispose]());

  /** The ports of a process, by listener. */
  async function portsOf(name: Name): Promise<Readonly<Record<string, number>>> {
    const announced = fixture.platform.announcedBy(name);
    const ports: Record<string, number> = {};
    const known = {
      api: new URL(announced.api_url).port,
      registry: announced.registry.split(':')[1] ?? '',
      proxy: new URL(announced.proxy_url).port,
      operations: new URL(announced.operations_url).port,
    };
    for (const port of await listeningPorts(fixture.platform.pidOf(name))) {
      const [listener = 'gateway'] = Object.entries(known).find(([, number]) => Number(number) === port) ?? [];
      ports[listener] = port;
    }
    return ports;
  }

  const portOf = async (name: Name, listener: string) => (await portsOf(name))[listener] ?? 0;

  async function statusOf(port: number, path: string, init: RequestInit = {}, host = '127.0.0.1'): Promise<number> {
    const answer = await fetch(`http://${host}:${port}${path}`, { redirect: 'manual', ...init });
    await answer.arrayBuffer();
    return answer.status;
  }

  test.each(names)('%s has the expected listeners and no others', async (name) => {
    const ports = await listeningPorts(fixture.platform.pidOf(name));
    expect(ports).toHaveLength(listenersOf[name].length);
    expect(Object.keys(await portsOf(name)).sort()).toEqual([...listenersOf[name]]);
  });

  test('the API requires an access token', async () => {
    const port = await portOf('api', 'api');
    const { account } = fixture.platform;
    const about = { method: 'POST', headers: { 'content-type': 'application/json' }, body: '{}' };
    for (const authorization of [undefined, 'Bearer ', 'Bearer berth_pat_guessed', 'Basic aG9tZTpndWVzc2Vk']) {
      const headers = { ...about.headers, ...(authorization && { authorization }) };
      expect(await statusOf(port, `/v2/account/${account}/backends`, { headers })).toBe(401);
      expect(await statusOf(port, `/v2/service/${account}/serve/connect`, { ...about, headers })).toBe(401);
      for (const stream of ['logs', 'metrics']) {
        expect(await statusOf(port, `/v2/backend/guessed/${stream}/stream`, { headers })).toBe(401);
      }
    }
  });

  test('the registry requires a login', async () => {
    const port = await portOf('registry', 'registry');
    const { account } = fixture.platform;
    for (const authorization of [undefined, 'Bearer guessed', 'Basic aG9tZTpndWVzc2Vk']) {
      const headers = authorization === undefined ? {} : { authorization };
      for (const path of ['/v2/', '/v2/_catalog', `/v2/${account}/serve/tags/list`]) {
        expect([path, await statusOf(port, path, { headers })]).toEqual([path, 401]);
      }
      const upload = `/v2/${account}/serve/blobs/uploads/`;
      expect(await statusOf(port, upload, { method: 'POST', headers })).toBe(401);
    }
  });

  test('the proxy requires a connection token', async () => {
    const port = await portOf('proxy', 'proxy');
    expect(await statusOf(port, '/')).toBe(404);
    expect(await statusOf(port, `/${'a'.repeat(43)}/`)).toBeGreaterThanOrEqual(404);
    expect(await statusOf(port, `/${'a'.repeat(43)}/`)).toBeLessThanOrEqual(410);
  });

  test('the gateway of a node without an advertised host listens on loopback', async () => {
    assert(otherAddress);
    const connection = connectTcp(await portOf('worker', 'gateway'), otherAddress);
    const [error] = (await once(connection, 'error')) as [NodeJS.ErrnoException];
    expect(error.code).toBe('ECONNREFUSED');
  });

  test.each(['worker', 'worker2'] as const)('the gateway of %s requires the secret of the platform', async (name) => {
    const port = await portOf(name, 'gateway');
    const plain = connectTcp(port, '127.0.0.1');
    plain.write('CONNECT something HTTP/1.1\r\nHost: something\r\n\r\n');
    // At most a TLS alert.
    expect((await everythingOf(plain)).length).toBeLessThanOrEqual(7);
    const guessed = () => ({ psk: Buffer.alloc(32), identity: linkIdentity });
    for (const terms of [{ rejectUnauthorized: false }, { ...linkTerms, pskCallback: guessed }]) {
      const client = connectTls({ port, host: '127.0.0.1', checkServerIdentity: () => undefined, ...terms });
      expect(await everythingOf(client)).toHaveLength(0);
    }
    const secret = new PlatformSecret(Buffer.alloc(32, 1));
    const link = linkConnect({ secret, host: '127.0.0.1', port, signal: AbortSignal.timeout(60_000) });
    await expect(link).rejects.toThrow(/alert|SSL/i);
  });

  test.each(names)(
    'operations of %s require a token for tasks, and from other machines for everything but readiness',
    async (name) => {
      const port = await portOf(name, 'operations');
      for (const headers of [{}, { authorization: 'Bearer guessed' }]) {
        expect(await statusOf(port, '/tasks/collect', { method: 'POST', headers })).toBe(401);
        assert(otherAddress);
        expect(await statusOf(port, '/metrics', { headers }, otherAddress)).toBe(401);
        const answer = await fetch(`http://${otherAddress}:${port}/readyz`, { headers });
        expect(await answer.json()).toEqual({ status: 'ok' });
      }
    },
  );
});

/** The bytes that the other side sends until it closes. */
async function everythingOf(socket: Socket): Promise<Buffer> {
  const chunks: Buffer[] = [];
  socket.on('data', (chunk: Buffer) => chunks.push(chunk));
  socket.on('error', () => {});
  await new Promise<void>((resolve) => void socket.once('close', () => resolve()));
  return Buffer.concat(chunks);
}

/** The TCP ports on which a process listens, from `/proc`. */
async function listeningPorts(pid: number): Promise<number[]> {
  const files = await readdir(`/proc/${pid}/fd`);
  const links = await Promise.all(files.map(async (file) => await readlink(`/proc/${pid}/fd/${file}`).catch(() => '')));
  const inodes = new Set(links.map((link) => /^socket:\[(\d+)\]$/.exec(link)?.[1]));
  const ports = new Set<number>();
  for (const table of ['tcp', 'tcp6']) {
    for (const line of (await readFile(`/proc/${pid}/net/${table}`, 'utf8')).split('\n').slice(1)) {
      const [, local, , state, , , , , , inode] = line.trim().split(/\s+/);
      const isListening = state === '0A';
      if (isListening && inodes.has(inode)) ports.add(Number.parseInt(local?.split(':')[1] ?? '', 16));
    }
  }
  return [...ports];
}
