import { afterEach, beforeEach, expect, test } from 'vitest';
import { ManualClock } from '../../core/clock/testing/manual-clock.ts';
import { openLog, silentLog } from '../../core/log/log.ts';
import type { Store } from '../../core/store/store.ts';
import { upsert } from '../../core/store/upsert.ts';
import { nodeLeaseMs, nodes } from '../../model/node.ts';
import type { Node } from '../../model/node.ts';
import { NodeNameError, assertOwnName, heardWithinMs } from './node-identity.ts';
import { openTestStore } from '../../test/kit/ports/test-store.ts';

let store: Store;
let clock: ManualClock;
beforeEach(async () => {
  store = await openTestStore();
  clock = new ManualClock();
});
afterEach(async () => await store[Symbol.asyncDispose]());

async function beat(machine: string, leaseUntil = new Date(Date.now() + nodeLeaseMs)): Promise<void> {
  const node: Node = {
    id: 'node-1',
    cluster: 'default',
    leaseUntil,
    startedAt: leaseUntil,
    engineVersion: '',
    machine,
  };
  await upsert(store, nodes, node.id, () => node);
}

/** Asserts the name, and if that waits for a heartbeat, advances the clock by that time; `meanwhile` runs in between. */
async function ask(meanwhile = async () => {}): Promise<unknown> {
  const settings = { node: 'node-1', machine: 'here' };
  const isWaiting = Promise.withResolvers<void>();
  const log = openLog('warn', { write: () => isWaiting.resolve() });
  const asked = assertOwnName({ store, clock, log, settings }).then(
    () => undefined,
    (error: unknown) => error,
  );
  await isWaiting.promise;
  await meanwhile();
  await clock.advance(heardWithinMs);
  return await asked;
}

test('a name is available at once if it is unused, was ours, or its machine has been dead for long', async () => {
  const startedAt = clock.now();
  const settings = { node: 'node-1', machine: 'here' };
  await assertOwnName({ store, clock, log: silentLog(), settings });
  await beat('here');
  await assertOwnName({ store, clock, log: silentLog(), settings });
  await beat('there', new Date(Date.now() - 1_000));
  await assertOwnName({ store, clock, log: silentLog(), settings });
  expect(clock.now()).toEqual(startedAt);
});

test('a name that another machine uses is refused with a message that says what to set', async () => {
  await beat('there');
  const problem = await ask(async () => await beat('there', new Date(Date.now() + 2 * nodeLeaseMs)));
  expect(problem).toBeInstanceOf(NodeNameError);
  expect((problem as Error).message).toContain('set BERTH_NODE to a name that no other node has');
});

test('the name of a machine without heartbeats is available', async () => {
  await beat('there');
  expect(await ask()).toBeUndefined();
});

test('the wait for a heartbeat ends when the signal aborts', async () => {
  await beat('there');
  const closing = new AbortController();
  const settings = { node: 'node-1', machine: 'here' };
  const log = openLog('warn', { write: () => closing.abort(new Error('closing')) });
  const asked = assertOwnName({ store, clock, log, settings, signal: closing.signal });
  await expect(asked).rejects.toThrow('closing');
});
