import { Registry } from 'prom-client';
import { expect, test } from 'vitest';
import { ManualClock } from '../../core/clock/testing/manual-clock.ts';
import { silentLog } from '../../core/log/log.ts';
import { assign, backends, newBackend } from '../../model/backend.ts';
import { nodes } from '../../model/node.ts';
import { backendPlan } from '../../model/testing/backend-plan.ts';
import { openTestStore } from '../../test/kit/ports/test-store.ts';
import { spawnRules } from '../testing/spawn-rules.ts';
import { Retention } from './retention.ts';

test('documents behind many that cannot be deleted yet are deleted', async () => {
  await using store = await openTestStore();
  const startedAt = new Date(0);
  const insertNode = async (id: string, leaseUntil: Date) =>
    await store.insert(nodes, { id, cluster: 'main', leaseUntil, startedAt, engineVersion: '28' });
  // More than two batches.
  const busy = Array.from({ length: 250 }, (_, index) => `busy-${index}`);
  await Promise.all(
    busy.map(async (node) => {
      await insertNode(node, new Date(1));
      await store.insert(backends, assign(newBackend(backendPlan({ id: `backend of ${node}` }), startedAt), node));
    }),
  );
  await insertNode('free', new Date(2));
  const deps = { store, clock: new ManualClock(), log: silentLog(), metrics: new Registry(), rules: spawnRules };
  await using retention = new Retention(deps);
  expect(await retention.deleteExpired()).toMatchObject({ nodes: 1 });
  expect(await store.get(nodes, 'free')).toBeUndefined();
});
