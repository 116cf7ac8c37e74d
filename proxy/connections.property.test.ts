// Takes about 3 s
/** Clients and backends that disconnect at random moments: in the end, no connection counts as open, neither here nor at the node. */
import { expect, test } from 'vitest';
import { systemClock } from '../core/clock/system-clock.ts';
import { Random } from '../test/fuzz/random.ts';
import { Connections } from '../worker/idle/connections.ts';
import { followProxies } from '../worker/idle/follow-proxies.ts';
import {
  connected,
  makeEnded,
  makeReady,
  openFixture,
  spawn,
  spawnReady,
  startRawProgram,
  until,
} from './testing/fixture.ts';
import type { Fixture } from './testing/fixture.ts';

const seeds = [1, 2, 3];
const clientsPerSeed = 150;
const concurrency = 12;

/** A backend that answers by the path of the request, and disconnects at a random moment. */
async function startErratic(random: Random) {
  return await startRawProgram((socket, head) => {
    const kind = /^\S+ \/(\w+)/.exec(head)?.[1];
    const leave = random.pick(['end', 'destroy', 'resetAndDestroy', 'none', 'none'] as const);
    if (kind === 'whole') socket.write('HTTP/1.1 200 Ok\r\nContent-Length: 5\r\n\r\nhello');
    if (kind === 'part') socket.write('HTTP/1.1 200 Ok\r\nContent-Length: 5000\r\n\r\nhello');
    if (kind === 'chunks') socket.write('HTTP/1.1 200 Ok\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n');
    if (kind === 'upgrade') socket.write('HTTP/1.1 101 Ok\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\nhello');
    if (kind === 'websocket')
      socket.write('HTTP/1.1 101 Ok\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n\x81\x05he');
    if (leave !== 'none') setTimeout(() => socket[leave](), random.below(8));
  });
}

const kinds = ['whole', 'part', 'chunks', 'silent', 'upgrade', 'websocket'] as const;

function requestOf(token: string, random: Random): string {
  const kind = random.pick(kinds);
  const path = `/${token}/${kind}`;
  if (kind === 'upgrade' || kind === 'websocket') {
    const protocol = kind === 'upgrade' ? 'echo' : 'websocket';
    return `GET ${path} HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: ${protocol}\r\n\r\nearly`;
  }
  const get = `GET ${path} HTTP/1.1\r\nHost: a\r\n\r\n`;
  return random.pick([get, get.repeat(3), `POST ${path} HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\npart`]);
}

/** A client that disconnects at a random byte of its request, or at a random moment after it. */
async function connectAndLeave(fixture: Fixture, token: string, random: Random): Promise<void> {
  const client = await connected(fixture.port);
  client.on('error', () => {}).resume();
  const closed = new Promise<void>((resolve) => client.once('close', () => resolve()));
  const request = requestOf(token, random);
  client.write(random.below(4) === 0 ? request.slice(0, random.below(request.length)) : request);
  await systemClock.sleep(random.below(12));
  client[random.pick(['end', 'destroy', 'resetAndDestroy'] as const)]();
  // A client that has ended its side may wait for an answer forever.
  await systemClock.sleep(random.below(4));
  client.destroy();
  await closed;
}

test.each(seeds)('no connection counts as open in the end, seed %i', async (seed) => {
  const random = new Random(seed);
  await using fixture = await openFixture();
  await using program = await startErratic(random);
  const connections = new Connections(() => true);
  await using _following = await followProxies(connections, { bus: fixture.bus, clock: systemClock, node: 'local' });
  const sessions = await Promise.all(Array.from({ length: 3 }, () => spawnReady(fixture, program)));
  const [starting, ending] = await Promise.all([spawn(fixture), spawn(fixture)]);
  const all = [...sessions, starting, ending];
  let left = clientsPerSeed;
  const events = [() => makeReady(fixture, starting.backend, program), () => makeEnded(fixture, ending.backend)];
  const clients = Array.from({ length: concurrency }, async () => {
    while (left-- > 0) {
      await connectAndLeave(fixture, random.pick(all).token, random);
      const due = left < 50 ? events.splice(0) : left < 100 ? events.splice(0, 1) : [];
      for (const happen of due) await happen();
    }
  });
  await until(() => all.some(({ backend }) => connections.isOpen(backend)));
  await Promise.all(clients);
  await until(async () => /^berth_proxy_open_connections 0$/m.test(await fixture.metrics.metrics()));
  await until(() => all.every(({ backend }) => !connections.isOpen(backend)));
  expect(Object.keys(fixture.reports.at(-1) ?? {})).toEqual([]);
  // The sockets of backends are closed, too, except for idle ones in pools, which time out.
  await until(() => program.sockets.size === 0);
});
