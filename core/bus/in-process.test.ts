import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import type { MessagePort } from 'node:worker_threads';
import { expect, test } from 'vitest';
import { z } from 'zod';
import { describeBus } from '../../test/suites/bus-suite.ts';
import { silentLog } from '../log/log.ts';
import { openInProcessBus } from './in-process.ts';

describeBus('In the process', async () => openInProcessBus({ log: silentLog() }));

describeBus('In the threads of a process', async () => {
  const bus = openInProcessBus({ log: silentLog() });
  openInProcessBus({ log: silentLog(), port: bus.connect() });
  return bus;
});

const topic = { name: 'counted', message: z.strictObject({ count: z.int() }) };

/** A thread that has opened the bus, listens, and publishes each number that it receives, plus a hundred. */
const thread = `
  const { parentPort, workerData } = require('node:worker_threads');
  (async () => {
    const { openInProcessBus } = await import(workerData.bus);
    const { z } = await import(workerData.zod);
    const topic = { name: 'counted', message: z.strictObject({ count: z.int() }) };
    const bus = openInProcessBus({ log: console, port: workerData.port });
    await bus.subscribe(topic, ({ count }) => { if (count < 100) void bus.publish(topic, { count: count + 100 }); });
    parentPort.postMessage('listens');
    parentPort.once('message', () => process.exit());
  })();
`;

function startThread(port: MessagePort): Worker {
  const workerData = {
    port,
    bus: new URL('in-process.ts', import.meta.url).href,
    zod: import.meta.resolve('zod'),
  };
  return new Worker(thread, { eval: true, execArgv: [], workerData, transferList: [port] });
}

test('a bus delivers each message once to all of its threads, in order', async () => {
  const bus = openInProcessBus({ log: silentLog() });
  const worker = startThread(bus.connect());
  await once(worker, 'message');
  // The first thread forwards the messages of the other thread to it.
  const third = openInProcessBus({ log: silentLog(), port: bus.connect() });
  const heard: number[] = [];
  const heardByThird: number[] = [];
  await bus.subscribe(topic, ({ count }) => void heard.push(count));
  await third.subscribe(topic, ({ count }) => void heardByThird.push(count));
  for (let count = 0; count < 50; count += 1) await bus.publish(topic, { count });
  for (const counts of [heard, heardByThird]) {
    await expect.poll(() => counts.length, { interval: 5 }).toBe(100);
    expect(counts.filter((count) => count < 100)).toStrictEqual(Array.from({ length: 50 }, (_, i) => i));
    expect(counts.filter((count) => count >= 100)).toStrictEqual(Array.from({ length: 50 }, (_, i) => i + 100));
  }
  await worker.terminate();
  await third[Symbol.asyncDispose]();
  await bus[Symbol.asyncDispose]();
});

test('a thread that has ended does not affect the others, and a new thread can replace it', async () => {
  const bus = openInProcessBus({ log: silentLog() });
  const heard: number[] = [];
  await bus.subscribe(topic, ({ count }) => void (count >= 100 && heard.push(count)));
  for (const count of [1, 2]) {
    const worker = startThread(bus.connect());
    await once(worker, 'message');
    await bus.publish(topic, { count });
    await expect.poll(() => heard, { interval: 5 }).toContain(count + 100);
    await worker.terminate();
    await bus.publish(topic, { count: 50 + count });
  }
  expect(heard).toStrictEqual([101, 102]);
  await bus[Symbol.asyncDispose]();
});
