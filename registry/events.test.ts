import { afterAll, beforeAll, expect, test } from 'vitest';
import { manifestDeleted, manifestPushed, tagDeleted } from '../contract/messages.ts';
import type { Bus } from '../core/bus/bus.ts';
import { openInProcessBus } from '../core/bus/in-process.ts';
import { silentLog } from '../core/log/log.ts';
import { openTestRegistry, pushImage, putManifest } from '../test/kit/registry/registry.ts';
import type { TestRegistry } from '../test/kit/registry/registry.ts';

const bus = openInProcessBus({ log: silentLog() });
const published: unknown[] = [];
let registry: TestRegistry;
beforeAll(async () => {
  registry = await openTestRegistry({ bus });
  for (const topic of [manifestPushed, manifestDeleted, tagDeleted]) {
    await bus.subscribe(topic as typeof tagDeleted, (message) => published.push({ topic: topic.name, ...message }));
  }
});
afterAll(async () => await registry[Symbol.asyncDispose]());

const next = async () => {
  await expect.poll(() => published.length).toBeGreaterThan(0);
  return published.splice(0);
};

const repository = 'acme/draw';
const mediaType = 'application/vnd.oci.image.manifest.v1+json';

test('pushes and deletions are published once they are stored', async () => {
  const { digest } = await pushImage(registry, { repository, reference: 'v1' });
  const pushed = { topic: 'manifest-pushed', repository, digest, mediaType, by: 'acme' };
  expect(await next()).toEqual([{ ...pushed, tags: ['v1'] }]);
  await pushImage(registry, { repository, reference: digest });
  expect(await next()).toEqual([{ ...pushed, tags: [] }]);
  await pushImage(registry, { repository, reference: `${digest}?tag=v2&tag=v3&tag=v2` });
  expect(await next()).toEqual([{ ...pushed, tags: ['v2', 'v3'] }]);

  expect((await registry.as(`/v2/${repository}/manifests/v2`, { method: 'DELETE' })).status).toBe(202);
  expect(await next()).toEqual([{ topic: 'tag-deleted', repository, tag: 'v2', by: 'acme' }]);
  expect((await registry.as(`/v2/${repository}/manifests/${digest}`, { method: 'DELETE' })).status).toBe(202);
  expect(await next()).toEqual([{ topic: 'manifest-deleted', repository, digest, by: 'acme' }]);
});

test('rejected requests publish nothing', async () => {
  await putManifest(registry, { repository, reference: 'bad' }, { mediaType, schemaVersion: 1 });
  await registry.as(`/v2/${repository}/manifests/none`, { method: 'DELETE' });
  const { digest } = await pushImage(registry, { repository, reference: 'after' });
  expect(await next()).toEqual([expect.objectContaining({ digest, tags: ['after'] })]);
});

test('an unavailable bus fails no push and no deletion', async () => {
  const unavailable: Bus = {
    ping: async () => await bus.ping(),
    subscribe: async (topic, listener) => await bus.subscribe(topic, listener),
    publish: async () => await Promise.reject(new Error('The bus is unavailable')),
    [Symbol.asyncDispose]: async () => {},
  };
  await using alone = await openTestRegistry({ bus: unavailable });
  const { status } = await pushImage(alone, { repository, reference: 'v1' });
  expect(status).toBe(201);
  expect((await alone.as(`/v2/${repository}/manifests/v1`, { method: 'DELETE' })).status).toBe(202);
  expect(alone.logLines.filter((line) => line.includes('Cannot publish a change')).length).toBe(2);
});
