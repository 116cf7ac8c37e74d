import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import { expect, test } from 'vitest';
import { z } from 'zod';
import { describeBus } from '../../test/suites/bus-suite.ts';
import { silentLog } from '../log/log.ts';
import { openInProcessBus } from './in-process.ts';

describeBus('In the process', async () => openInProcessBus({ log: silentLog() }));

describeBus('In the threads of a process', async () => openInProcessBus({ log: silentLog(), name: randomUUID() }));

const topic = { name: 'counted', message: z.strictObject({ count: z.int() }) };

/** A thread that has opened the bus, listens, and publishes each number that it hears, plus a hundred. */
const thread = `
  const { parentPort, workerData } = require('node:worker_threads');
  (async () => {
    const { openInProcessBus } = await import(workerData.bus);
    const { z } = await import(workerData.zod);
    const topic = { name: 'counted', message: z.strictObject({ count: z.int() }) };
    const bus = openInProcessBus({ log: console, name: workerData.name });
    await bus.subscribe(topic, ({ count }) => { if (count < 100) void bus.publish(topic, { count: count + 100 }); });
    parentPort.postMessage('listens');
    parentPort.once('message', () => process.exit());
  })();
`;

test('a bus with a name delivers to all threads that opened it, in order, and to no bus of another name', async () => {
  const name = randomUUID();
  const bus = openInProcessBus({ log: silentLog(), name });
  const other = openInProcessBus({ log: silentLog(), name: randomUUID() });
  const workerData = {
    name,
    bus: new URL('in-process.ts', import.meta.url).href,
    zod: import.meta.resolve('zod'),
  };
  const worker = new Worker(thread, { eval: true, execArgv: [], workerData });
  await once(worker, 'message');
  const heard: number[] = [];
  const elsewhere: number[] = [];
  await bus.subscribe(topic, ({ count }) => void heard.push(count));
  await other.subscribe(topic, ({ count }) => void elsewhere.push(count));
  for (let count = 0; count < 50; count += 1) await bus.publish(topic, { count });
  await expect.poll(() => heard.length, { interval: 5 }).toBe(100);
  expect(heard.filter((count) => count < 100)).toStrictEqual(Array.from({ length: 50 }, (_, i) => i));
  expect(heard.filter((count) => count >= 100)).toStrictEqual(Array.from({ length: 50 }, (_, i) => i + 100));
  expect(elsewhere).toStrictEqual([]);
  await worker.terminate();
  await bus[Symbol.asyncDispose]();
  await other[Symbol.asyncDispose]();
});
