import { expect, test } from 'vitest';
import { nodeDrainChanged } from '../contract/messages.ts';
import { nodes } from '../model/node.ts';
import { addAdmin, logIn } from './testing/people.ts';
import { openTestApi } from './testing/test-api.ts';

const startedAt = new Date('2026-11-01T00:00:00Z');

test('an administrator lists nodes, drains one and undrains it; its worker is notified', async () => {
  await using api = await openTestApi();
  await addAdmin(api, 'root@example.com', 'acme');
  const admin = await logIn(api, 'root@example.com');
  const now = await api.store.now();
  for (const [id, leaseMs] of [
    ['second', -1000],
    ['first', 60_000],
  ] as const) {
    const leaseUntil = new Date(now.getTime() + leaseMs);
    await api.store.insert(nodes, { id, cluster: 'default', leaseUntil, startedAt, engineVersion: '28.5.2' });
  }
  const notified: string[] = [];
  await using _subscription = await api.bus.subscribe(nodeDrainChanged, ({ node }) => void notified.push(node));
  const first = {
    name: 'first',
    cluster: 'default',
    alive: true,
    drained_at: null,
    running_backends: 0,
    started_at: startedAt.toISOString(),
    engine_version: '28.5.2',
  };
  expect((await admin.get('/v2/nodes')).body).toEqual({ nodes: [first, { ...first, name: 'second', alive: false }] });
  expect((await admin.post('/v2/node/first/drain')).body).toEqual({ status: 'ok' });
  const { drainedAt } = (await api.store.get(nodes, 'first')) ?? {};
  expect((await admin.get('/v2/nodes')).body.nodes[0]).toEqual({ ...first, drained_at: drainedAt?.toISOString() });
  await admin.post('/v2/node/first/drain');
  expect((await api.store.get(nodes, 'first'))?.drainedAt).toEqual(drainedAt);
  await admin.post('/v2/node/first/undrain');
  expect((await admin.get('/v2/nodes')).body.nodes[0]).toEqual(first);
  await expect.poll(() => notified).toEqual(['first', 'first', 'first']);
  expect((await admin.post('/v2/node/none/drain')).body.error.code).toBe('NodeNotFound');
  expect((await api.get('/v2/nodes')).body.error.code).toBe('Forbidden');
});
