import { expect, test } from 'vitest';
import { connectionsHeartbeatMs, connectionsOf, proxyHeartbeat } from '../contract/messages.ts';
import { openInProcessBus } from '../core/bus/in-process.ts';
import { ManualClock } from '../core/clock/testing/manual-clock.ts';
import { silentLog } from '../core/log/log.ts';
import { Connections, gatherMs } from './connections.ts';

type Report = { readonly isWhole: boolean; readonly open: Record<string, number> };

async function openCounter() {
  const clock = new ManualClock();
  const log = silentLog();
  const bus = openInProcessBus({ log });
  const beats: string[][] = [];
  const reports = { near: [] as Report[], far: [] as Report[] };
  await bus.subscribe(proxyHeartbeat, ({ proxy, nodes }) => {
    expect(proxy).toBe('p');
    beats.push(nodes);
  });
  for (const node of ['near', 'far'] as const) {
    await bus.subscribe(connectionsOf(node), ({ isWhole, open }) => reports[node].push({ isWhole, open }));
  }
  return { clock, reports, beats, bus, connections: new Connections({ id: 'p', bus, clock, log }) };
}

const changed = (open: Record<string, number>) => ({ isWhole: false, open });
const whole = (open: Record<string, number>) => ({ isWhole: true, open });

test('the first connection that opens and the last that closes are reported at once, all others with the heartbeat', async () => {
  const { clock, reports, beats, connections } = await openCounter();
  const first = connections.open('a', 'near');
  await clock.advance(0);
  expect(reports.near).toEqual([changed({ a: 1 })]);
  await clock.advance(gatherMs);
  const second = connections.open('a', 'near');
  await clock.advance(gatherMs);
  expect(reports.near).toHaveLength(1);
  await clock.advance(connectionsHeartbeatMs);
  expect(reports.near.at(-1)).toEqual(whole({ a: 2 }));
  expect(beats).toEqual([['near']]);
  first[Symbol.dispose]();
  await clock.advance(gatherMs);
  second[Symbol.dispose]();
  await clock.advance(0);
  expect(reports.near.slice(2)).toEqual([changed({ a: 0 })]);
  expect(connections.total).toBe(0);
});

test('each node gets only reports about its own backends', async () => {
  const { clock, reports, beats, connections } = await openCounter();
  using _a = connections.open('a', 'near');
  await clock.advance(gatherMs);
  expect(reports.far).toEqual([]);
  const b = connections.open('b', 'far');
  await clock.advance(connectionsHeartbeatMs);
  expect(reports.near).toEqual([changed({ a: 1 }), whole({ a: 1 })]);
  expect(reports.far).toEqual([changed({ b: 1 }), whole({ b: 1 })]);
  b[Symbol.dispose]();
  await clock.advance(connectionsHeartbeatMs);
  expect(reports.far.slice(2)).toEqual([changed({ b: 0 })]);
  expect(beats).toEqual([['near', 'far'], ['near']]);
});

test('a connection is reported as soon as the node of its backend is known', async () => {
  const { clock, reports, beats, connections } = await openCounter();
  const early = connections.open('a');
  using _later = connections.open('a');
  await clock.advance(connectionsHeartbeatMs);
  expect([beats, reports.near]).toEqual([[[]], []]);
  early.at(undefined);
  early.at('near');
  await clock.advance(gatherMs);
  expect(reports.near).toEqual([changed({ a: 2 })]);
  early[Symbol.dispose]();
  early.at('far');
  await clock.advance(connectionsHeartbeatMs);
  expect(reports.near.at(-1)).toEqual(whole({ a: 1 }));
  expect(reports.far).toEqual([]);
  // Its node was never known.
  connections.open('lost')[Symbol.dispose]();
  await clock.advance(connectionsHeartbeatMs);
  expect(reports.near.at(-1)).toEqual(whole({ a: 1 }));
});

test('closing a connection twice counts once', async () => {
  const { clock, reports, connections } = await openCounter();
  const first = connections.open('a', 'near');
  using _second = connections.open('a', 'near');
  first[Symbol.dispose]();
  first[Symbol.dispose]();
  await clock.advance(connectionsHeartbeatMs);
  expect(reports.near.at(-1)).toEqual(whole({ a: 1 }));
  expect(connections.total).toBe(1);
});

test('heartbeats continue while nothing is open, and nodes without connections get nothing else', async () => {
  const { clock, reports, beats } = await openCounter();
  await clock.advance(3 * connectionsHeartbeatMs);
  expect(beats).toEqual([[], [], []]);
  expect(reports).toEqual({ near: [], far: [] });
});

test('connections that are open for a moment are reported, with few messages', async () => {
  const { clock, reports, connections } = await openCounter();
  for (let i = 0; i < 100; i += 1) connections.open('a', 'near')[Symbol.dispose]();
  connections.open('b', 'near')[Symbol.dispose]();
  await clock.advance(2 * gatherMs);
  expect(reports.near).toEqual([changed({ a: 1 }), changed({ a: 1, b: 1 }), changed({ a: 0, b: 0 })]);
});

test('the last report is that nothing is open', async () => {
  const { clock, reports, beats, connections } = await openCounter();
  const open = connections.open('a', 'near');
  await connections[Symbol.asyncDispose]();
  await connections[Symbol.asyncDispose]();
  open[Symbol.dispose]();
  connections.open('b', 'near');
  await clock.advance(connectionsHeartbeatMs);
  expect(reports.near).toEqual([changed({ a: 1 })]);
  expect(beats).toEqual([[]]);
});

test('connections are still counted if the bus fails', async () => {
  const { clock, connections, bus } = await openCounter();
  await bus[Symbol.asyncDispose]();
  connections.open('a', 'near')[Symbol.dispose]();
  await clock.advance(connectionsHeartbeatMs);
  await connections[Symbol.asyncDispose]();
  expect(connections.total).toBe(0);
});
