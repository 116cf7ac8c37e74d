import { expect, test } from 'vitest';
import { assign, becomeTerminated, newBackend } from './backend.ts';
import type { Backend } from './backend.ts';
import { likelyNodes } from './likely-nodes.ts';
import { backendPlan } from './testing/backend-plan.ts';

const now = new Date('2026-03-10T12:00:00Z');
const environment = { name: 'default', imageTag: 'latest', cluster: 'main', createdAt: now };

function spawned(node: string | undefined, about: { days?: number; ended?: boolean } & Partial<Backend> = {}): Backend {
  const { days = 0, ended = true, ...more } = about;
  const createdAt = new Date(now.getTime() - days * 24 * 60 * 60 * 1000);
  const fresh = newBackend(backendPlan({ cluster: 'main', ...more }), createdAt);
  const claimed = node === undefined ? fresh : assign(fresh, node);
  return ended ? becomeTerminated(claimed, { kind: null, reason: null, exitCode: 0 }, now) : claimed;
}

test('selects nodes that ran the environment this week, each once', () => {
  const recent = [
    spawned('one'),
    spawned('two', { days: 7 }),
    spawned('one', { days: 1 }),
    spawned('old', { days: 7.1 }),
  ];
  expect(likelyNodes(environment, recent, now)).toEqual(['one', 'two']);
});

test('selects nodes that still run it, however long', () => {
  expect(likelyNodes(environment, [spawned('one', { days: 300, ended: false })], now)).toEqual(['one']);
});

test('ignores backends without a node, of other environments and of other clusters', () => {
  const others = [spawned(undefined), spawned('b', { environment: 'staging' }), spawned('c', { cluster: 'gpu' })];
  expect(likelyNodes(environment, others, now)).toEqual([]);
});
