import { expect, test } from 'vitest';
import { connectionsHeartbeatMs, connectionsOpen } from '../contract/messages.ts';
import { openInProcessBus } from '../core/bus/in-process.ts';
import { ManualClock } from '../core/clock/manual-clock.ts';
import { silentLog } from '../core/log/log.ts';
import { Connections, gatherMs } from './connections.ts';

async function openCounter() {
  const clock = new ManualClock();
  const log = silentLog();
  const bus = openInProcessBus({ log });
  const reports: Record<string, number>[] = [];
  await bus.subscribe(connectionsOpen, ({ proxy, open }) => {
    expect(proxy).toBe('p');
    reports.push(open);
  });
  return { clock, reports, bus, connections: new Connections({ id: 'p', bus, clock, log }) };
}

test('the first connection that opens and the last that closes are reported at once, all others with the heartbeat', async () => {
  const { clock, reports, connections } = await openCounter();
  const first = connections.open('a');
  await clock.advance(0);
  expect(reports).toEqual([{ a: 1 }]);
  await clock.advance(gatherMs);
  const second = connections.open('a');
  await clock.advance(gatherMs);
  expect(reports).toEqual([{ a: 1 }]);
  await clock.advance(connectionsHeartbeatMs);
  expect(reports.at(-1)).toEqual({ a: 2 });
  first[Symbol.dispose]();
  await clock.advance(gatherMs);
  const { length } = reports;
  second[Symbol.dispose]();
  await clock.advance(0);
  expect(reports.slice(length)).toEqual([{}]);
  expect(connections.total).toBe(0);
});

test('closing a connection twice counts once', async () => {
  const { clock, reports, connections } = await openCounter();
  const first = connections.open('a');
  using _second = connections.open('a');
  first[Symbol.dispose]();
  first[Symbol.dispose]();
  await clock.advance(connectionsHeartbeatMs);
  expect(reports.at(-1)).toEqual({ a: 1 });
  expect(connections.total).toBe(1);
});

test('heartbeats continue while nothing is open', async () => {
  const { clock, reports } = await openCounter();
  await clock.advance(3 * connectionsHeartbeatMs);
  expect(reports).toEqual([{}, {}, {}]);
});

test('connections that are open for a moment are reported, with few messages', async () => {
  const { clock, reports, connections } = await openCounter();
  for (let i = 0; i < 100; i += 1) connections.open('a')[Symbol.dispose]();
  connections.open('b')[Symbol.dispose]();
  await clock.advance(2 * gatherMs);
  expect(reports).toEqual([{ a: 1 }, { a: 1, b: 1 }, {}]);
});

test('the last report is that nothing is open', async () => {
  const { clock, reports, connections } = await openCounter();
  const open = connections.open('a');
  await connections[Symbol.asyncDispose]();
  await connections[Symbol.asyncDispose]();
  open[Symbol.dispose]();
  connections.open('b');
  await clock.advance(connectionsHeartbeatMs);
  expect(reports).toEqual([{ a: 1 }, {}]);
});

test('connections are still counted if the bus fails', async () => {
  const { clock, connections, bus } = await openCounter();
  await bus[Symbol.asyncDispose]();
  connections.open('a')[Symbol.dispose]();
  await clock.advance(connectionsHeartbeatMs);
  await connections[Symbol.asyncDispose]();
  expect(connections.total).toBe(0);
});
