/** When garbage collection runs, and in which process. */
import { expect, test } from 'vitest';
import { collect } from '../../test/kit/registry/garbage-collection.ts';
import { leaderLeases } from '../content/documents.ts';
import { blobCount, hourMs, leaseMs, openGcFixture, push } from '../testing/gc-fixture.ts';

test('while another process collects, this process does not; seconds after the other process has died, it does', async () => {
  await using opened = await openGcFixture();
  const { registry, clock } = opened;
  const until = new Date(clock.now().getTime() + 15_000);
  await registry.store.insert(leaderLeases, { id: 'collector', holder: 'another process', until });
  await expect(collect(registry)).rejects.toMatchObject({ name: 'GcBusyError' });
  await clock.advance(16_000);
  expect((await collect(registry)).summary.type).toBe('collected');
});

test('runs on schedule, and writes a log line and metrics', async () => {
  await using opened = await openGcFixture({ everyMs: hourMs });
  const { registry, clock } = opened;
  await push(registry, 'latest', 'old');
  await push(registry, 'latest', 'current');
  await clock.advance(2 * leaseMs);
  const later = async () => {
    await clock.advance(hourMs / 4);
    return await blobCount(registry);
  };
  await expect.poll(later).toBe(2);
  const isLogged = () =>
    registry.logLines.some((line) => line.includes('Garbage collected') && line.includes('"manifests":1'));
  await expect.poll(isLogged).toBe(true);
  const text = await registry.metrics.metrics();
  expect(text).toContain('berth_registry_collection_collected_total{what="manifests"} 1');
  expect(text).toMatch(/berth_registry_collection_freed_bytes_total [1-9]/);
  expect(text).toMatch(/berth_registry_collection_last_success_timestamp_seconds [1-9]/);
});
