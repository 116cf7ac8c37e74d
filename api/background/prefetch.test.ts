import { afterEach, beforeEach, expect, test } from 'vitest';
import { prefetchJob, nodeQueue } from '../../contract/jobs.ts';
import { manifestPushed } from '../../contract/messages.ts';
import type { Bus } from '../../core/bus/bus.ts';
import { openInProcessBus } from '../../core/bus/in-process.ts';
import { systemClock } from '../../core/clock/system-clock.ts';
import { silentLog } from '../../core/log/log.ts';
import { openInProcessQueue } from '../../core/queue/in-process.ts';
import { JobHandlers, QueueError } from '../../core/queue/queue.ts';
import type { Queue } from '../../core/queue/queue.ts';
import type { Store } from '../../core/store/store.ts';
import { assign, backends, newBackend } from '../../model/backend.ts';
import { newBackendId } from '../../model/ids.ts';
import { imageId, images } from '../../model/image.ts';
import { nodes } from '../../model/node.ts';
import { newService, services } from '../../model/service.ts';
import { backendPlan } from '../../model/testing/backend-plan.ts';
import { Prefetcher } from './prefetch.ts';
import { spawnRules } from '../testing/spawn-rules.ts';
import { openTestStore } from '../../test/kit/ports/test-store.ts';

const log = silentLog();
const repository = 'acme/draw';
let closing: AsyncDisposableStack;
let store: Store;
let queue: Queue;
let bus: Bus;
/** `<node> <image>` of each notification. */
let notified: string[];

beforeEach(async () => {
  closing = new AsyncDisposableStack();
  store = closing.use(await openTestStore());
  queue = closing.use(openInProcessQueue({ clock: systemClock, log }));
  bus = closing.use(openInProcessBus({ log }));
  notified = [];
  await store.insert(services, newService({ account: 'acme', name: 'draw', cluster: 'main' }, new Date()));
  for (const node of ['node-1', 'node-2']) await addNode(node);
});
afterEach(() => closing.disposeAsync());

async function addNode(id: string, { cluster = 'main', leaseMs = 60_000 } = {}): Promise<void> {
  const now = await store.now();
  const leaseUntil = new Date(now.getTime() + leaseMs);
  await store.insert(nodes, { id, cluster, leaseUntil, startedAt: now, engineVersion: '28' });
  await consumeJobs(id);
}

async function consumeJobs(id: string): Promise<void> {
  const handlers = new JobHandlers().on(prefetchJob, async ({ image }) => void notified.push(`${id} ${image}`));
  closing.use(await queue.consume(nodeQueue(id), handlers, { concurrency: 1 }));
}

async function spawnOn(node: string, service = 'draw'): Promise<void> {
  const id = newBackendId();
  const backend = newBackend(backendPlan({ id, service, cluster: 'main' }), await store.now());
  await store.insert(backends, assign(backend, node));
}

/** Stores an image and publishes the push, as the registry does. */
async function push(tag: string, digest: string): Promise<string> {
  const id = imageId(repository, tag, digest);
  await store.insert(images, { id, repository, tag, digest, uploadTime: await store.now(), sizeBytes: 1 });
  await bus.publish(manifestPushed, { repository, digest, mediaType: 'any', tags: [tag], by: 'acme' });
  // All subscribers receive it before this.
  await new Promise((resolve) => setImmediate(resolve));
  return id;
}

async function open({ prefetchEnabled = true, on = queue } = {}): Promise<Prefetcher> {
  const rules = { ...spawnRules, prefetchEnabled };
  const prefetch = new Prefetcher({ store, queue: on, bus, log, rules });
  await prefetch.listen();
  return prefetch;
}

/** Waits for pending notifications and for the handlers of their jobs. */
async function close(prefetch: Prefetcher): Promise<void> {
  await prefetch[Symbol.asyncDispose]();
  await new Promise((resolve) => setImmediate(resolve));
}

test('a push of the tag of an environment notifies the live nodes that spawned it', async () => {
  await addNode('dead', { leaseMs: -1 });
  await addNode('moved', { cluster: 'other' });
  for (const node of ['node-1', 'node-1', 'dead', 'moved', 'forgotten']) await spawnOn(node);
  await spawnOn('node-2', 'other');
  const prefetch = await open();
  const image = await push('latest', 'sha256:1');
  await close(prefetch);
  expect(notified).toEqual([`node-1 ${image}`]);
});

test('a node’s queue holds an image once, whichever process and tag notify the node', async () => {
  await spawnOn('node-3');
  const leaseUntil = new Date((await store.now()).getTime() + 60_000);
  await store.insert(nodes, { id: 'node-3', cluster: 'main', leaseUntil, startedAt: leaseUntil, engineVersion: '28' });
  const [one, other] = [await open(), await open()];
  await push('v1', 'sha256:1');
  const image = await push('latest', 'sha256:1');
  one.begin(repository, () => true);
  await Promise.all([close(one), close(other)]);
  await consumeJobs('node-3');
  await expect.poll(() => notified).toEqual([`node-3 ${image}`]);
});

test('a push of another tag notifies no node before an environment is changed to it', async () => {
  await spawnOn('node-1');
  const prefetch = await open();
  const latest = await push('latest', 'sha256:1');
  await expect.poll(() => notified).toEqual([`node-1 ${latest}`]);
  const image = await push('v2', 'sha256:2');
  await store.update(services, repository, (service) => ({
    ...service,
    environments: service.environments.map((each) => ({ ...each, imageTag: 'v2' })),
  }));
  prefetch.begin(repository, ({ name }) => name === 'default');
  prefetch.begin('acme/unknown', () => true);
  await close(prefetch);
  expect(notified).toEqual([`node-1 ${latest}`, `node-1 ${image}`]);
});

test('no node is notified for an unused service, or where prefetching is turned off', async () => {
  const used = await open();
  await push('latest', 'sha256:1');
  await close(used);
  await spawnOn('node-1');
  const off = await open({ prefetchEnabled: false });
  await push('latest', 'sha256:2');
  await close(off);
  expect(notified).toEqual([]);
});

test('an unavailable queue does not delay requests, and the next push is handled', async () => {
  await spawnOn('node-1');
  let isUnavailable = true;
  const add: Queue['add'] = async (...args) => {
    if (isUnavailable) throw new QueueError('unavailable', 'The queue is unavailable');
    await queue.add(...args);
  };
  const unreliable: Queue = {
    ping: () => queue.ping(),
    consume: (...args) => queue.consume(...args),
    add: async (...args) => await add(...args),
    [Symbol.asyncDispose]: () => queue[Symbol.asyncDispose](),
  };
  const unavailable = await open({ on: unreliable });
  await push('latest', 'sha256:1');
  await close(unavailable);
  expect(notified).toEqual([]);
  isUnavailable = false;
  const available = await open({ on: unreliable });
  const image = await push('latest', 'sha256:2');
  await close(available);
  expect(notified).toEqual([`node-1 ${image}`]);
});
