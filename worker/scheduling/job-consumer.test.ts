import { expect, test } from 'vitest';
import { clusterQueue, spawnJob } from '../../contract/jobs.ts';
import { backendWaits } from '../../contract/messages.ts';
import { Semaphore } from '../../core/async/semaphore.ts';
import { openInProcessBus } from '../../core/bus/in-process.ts';
import { ManualClock } from '../../core/clock/testing/manual-clock.ts';
import { silentLog } from '../../core/log/log.ts';
import { openInProcessQueue } from '../../core/queue/in-process.ts';
import type { Store } from '../../core/store/store.ts';
import type { WorkerContext } from '../context.ts';
import { NodeDrain } from '../node/drain.ts';
import { consumeSpawnJobs } from './job-consumer.ts';
import { expectCloseInFiveSeconds } from '../testing/closing.ts';

const cluster = 'default';

test('a claim and a job that the store does not answer delay the close for five seconds only', async () => {
  const log = silentLog();
  const clock = new ManualClock();
  await using bus = openInProcessBus({ log });
  await using queue = openInProcessQueue({ clock, log });
  const unanswered: string[] = [];
  const silent = async (method: string) => {
    unanswered.push(method);
    return await new Promise<never>(() => {});
  };
  let isSilent = false;
  const store = {
    find: async () => (isSilent ? await silent('find') : []),
    get: async () => await silent('get'),
  } as unknown as Store;
  const worker = {
    store,
    bus,
    clock,
    log,
    settings: { node: 'node-1', cluster, maxConcurrentStarts: 1 },
    engine: { memoryBytes: 0 },
    engineHealth: { problem: undefined, onChange: () => {} },
    drain: new NodeDrain(),
    runs: new Map(),
    claiming: new Map(),
    starts: new Semaphore(1),
    closing: new AbortController().signal,
  } as unknown as WorkerContext;
  const consumer = await consumeSpawnJobs(worker, queue);
  isSilent = true;
  await bus.publish(backendWaits, { cluster });
  await queue.add(clusterQueue(cluster), spawnJob, { backend: 'backend00001' }, { id: 'backend00001' });
  await expect.poll(() => unanswered.toSorted()).toEqual(['find', 'get']);
  await expectCloseInFiveSeconds(consumer);
});
