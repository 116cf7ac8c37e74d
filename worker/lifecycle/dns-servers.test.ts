import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { dnsServersFor } from './dns-servers.ts';

let folder: string;
let files: string[];
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'berth-dns-'));
  files = ['resolv.conf', 'upstream.conf', 'missing.conf'].map((name) => join(folder, name));
  await writeFile(files[0]!, '# nameserver 10.0.0.9\nnameserver 127.0.0.53\noptions edns0\n');
  await writeFile(files[1]!, 'search example\nnameserver 10.0.0.53\nnameserver 192.0.2.53\nnameserver fd00::53\n');
});
afterAll(() => rm(folder, { recursive: true }));

test('a backend without limits uses the servers of the machine, unless others are configured', async () => {
  expect(await dnsServersFor('open', { files })).toBeUndefined();
  expect(await dnsServersFor('open', { configured: ['10.0.0.1'], files })).toEqual(['10.0.0.1']);
});

test('a backend without egress has no server, even if one is configured', async () => {
  expect(await dnsServersFor('none', { configured: ['10.0.0.1'], files })).toEqual(['127.0.0.1']);
});

test.each([
  [['10.0.0.0/8'], ['10.0.0.53']],
  [
    ['10.0.0.53/32', '192.0.2.0/24'],
    ['10.0.0.53', '192.0.2.53'],
  ],
  [['10.0.1.0/24'], ['127.0.0.1']],
  // Loopback of the machine is not one of its networks.
  [['127.0.0.0/8'], ['127.0.0.1']],
])('a backend with the networks %s uses %s', async (egress, servers) => {
  expect(await dnsServersFor(egress, { files })).toEqual(servers);
});

test('a backend uses the configured servers that are in its networks', async () => {
  const configured = ['10.0.0.1', '203.0.113.1'];
  expect(await dnsServersFor(['203.0.113.0/24'], { configured, files })).toEqual(['203.0.113.1']);
  expect(await dnsServersFor(['10.0.0.53/32'], { configured, files })).toEqual(['127.0.0.1']);
});
