import { afterEach, beforeEach, expect, test } from 'vitest';
import { openLog } from '../../core/log/log.ts';
import type { Store } from '../../core/store/store.ts';
import { nodes } from '../../model/node.ts';
import { NodeReachability } from './node-reachability.ts';
import type { WorkerSettings } from '../settings.ts';
import { openTestStore } from '../../test/kit/ports/test-store.ts';

let store: Store;
beforeEach(async () => {
  store = await openTestStore();
});
afterEach(async () => await store[Symbol.asyncDispose]());

async function addNode(id: string, leaseUntil = new Date(Date.now() + 60_000)): Promise<void> {
  await store.insert(nodes, { id, cluster: id, leaseUntil, startedAt: leaseUntil, engineVersion: '' });
}

function checkFrom(gatewayHost: string | undefined) {
  const logged: string[] = [];
  const log = openLog('warn', { write: (line) => void logged.push((JSON.parse(line) as { msg: string }).msg) });
  const settings = { node: 'here' } as WorkerSettings;
  const gateway = gatewayHost === undefined ? undefined : { host: gatewayHost, port: 7104 };
  const reachability = new NodeReachability({ store, log, settings }, gateway);
  return { check: () => reachability.check(), logged };
}

test('a node alone, or beside dead nodes, logs nothing', async () => {
  await addNode('here');
  await addNode('long-gone', new Date(0));
  const { check, logged } = checkFrom(undefined);
  await check();
  expect(logged).toEqual([]);
});

test.each([undefined, '127.0.0.1', 'localhost', '::1', 'host.docker.internal'])(
  'a node with the advertised host %s logs once, when another node joins, what to set',
  async (host) => {
    await addNode('here');
    const { check, logged } = checkFrom(host);
    await check();
    expect(logged).toEqual([]);
    await addNode('there');
    await check();
    await check();
    expect(logged).toEqual([expect.stringMatching(/set BERTH_ADVERTISED_HOST to the name or address/)]);
  },
);

test.each(['10.0.0.1', 'node-1.internal', '2001:db8::1'])(
  'a node with the advertised host %s logs nothing',
  async (host) => {
    await addNode('there');
    const { check, logged } = checkFrom(host);
    await check();
    expect(logged).toEqual([]);
  },
);
