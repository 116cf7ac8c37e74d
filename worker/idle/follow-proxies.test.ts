import { expect, it } from 'vitest';
import { connectionsOf, proxyHeartbeat } from '../../contract/messages.ts';
import { openInProcessBus } from '../../core/bus/in-process.ts';
import { ManualClock } from '../../core/clock/testing/manual-clock.ts';
import { silentLog } from '../../core/log/log.ts';
import { Connections } from './connections.ts';
import { followProxies } from './follow-proxies.ts';

async function follow() {
  const clock = new ManualClock();
  const bus = openInProcessBus({ log: silentLog() });
  const connections = new Connections(() => true);
  const following = await followProxies(connections, { bus, clock, node: 'here' });
  const report = async (node: string, open: Record<string, number>, isWhole = true) => {
    await bus.publish(connectionsOf(node), { proxy: 'p', isWhole, open });
    await clock.advance(10);
  };
  const beat = async (...nodes: string[]) => {
    await bus.publish(proxyHeartbeat, { proxy: 'p', nodes });
    await clock.advance(10);
  };
  return { clock, connections, following, report, beat };
}

it('records the reports to its own node, whole ones and changes', async () => {
  const { connections, report } = await follow();
  await report('elsewhere', { far: 1 });
  expect([connections.isOpen('far'), connections.reportedUntil]).toEqual([false, undefined]);
  await report('here', { a: 1, b: 1 });
  await report('here', { a: 0, c: 2 }, false);
  expect(['a', 'b', 'c'].map((each) => connections.isOpen(each))).toEqual([false, true, true]);
  await report('here', { c: 1 });
  expect(['a', 'b', 'c'].map((each) => connections.isOpen(each))).toEqual([false, false, true]);
});

it('treats a heartbeat that does not name the node as a report without connections, and ignores the others', async () => {
  const { clock, connections, report, beat } = await follow();
  await beat('elsewhere');
  const first = connections.reportedUntil;
  expect(first).toBeDefined();
  await report('here', { a: 1 }, false);
  await beat('here', 'elsewhere');
  expect([connections.isOpen('a'), connections.reportedUntil]).toEqual([true, first]);
  const closedAt = clock.now();
  await beat('elsewhere');
  expect([connections.isOpen('a'), connections.closedAt('a')]).toEqual([false, closedAt]);
});

it('records nothing after it is disposed', async () => {
  const { connections, following, report, beat } = await follow();
  await following[Symbol.asyncDispose]();
  await report('here', { a: 1 });
  await beat();
  expect([connections.isOpen('a'), connections.reportedSince]).toEqual([false, undefined]);
});
