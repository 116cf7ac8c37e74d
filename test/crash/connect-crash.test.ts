/** The platform is killed (kill -9) during connects, some of which have claimed their key but not yet written their backend. */
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { silentLog } from '../../core/log/log.ts';
import { openSqliteStore } from '../../core/store/sqlite/sqlite.ts';
import { backends } from '../../model/backend.ts';
import { modelCollections } from '../../model/collections.ts';
import { keys } from '../../model/key.ts';
import { connect } from '../kit/platform/api-client.ts';
import { startPlatform } from '../kit/platform/platform.ts';
import { RegistryClient } from '../kit/platform/registry-client.ts';

const concurrentConnects = 100;

/** Several, because a process that dies between two batches of the store leaves no claim without a backend. */
const maxRounds = 20;

test('a connect to a key whose claimer died succeeds a moment later', async () => {
  await using platform = await startPlatform();
  const client = new RegistryClient(platform);
  await client.push(client.image('draw', 'latest', [RegistryClient.layer(100)]));

  /** Kills the platform as soon as the first of many connects is answered. Returns how many claims have no backend. */
  const killDuring = async (names: readonly string[]): Promise<number> => {
    const connects = names.map(async (key) => await connect(platform, 'draw', { key }));
    await Promise.any(connects);
    await platform.kill();
    const outcomes = await Promise.allSettled(connects);
    // The kill came after the last answer: the next round tries again.
    if (outcomes.every(({ status }) => status === 'fulfilled')) return 0;
    const folder = join(platform.dataFolder, 'store');
    await using store = await openSqliteStore({ folder, collections: [...modelCollections], log: silentLog() });
    const claims = await store.find(keys, { index: 'byLease' });
    const holders = await Promise.all(claims.map(async ({ backend }) => await store.get(backends, backend)));
    return holders.filter((holder) => !holder).length;
  };

  let left = 0;
  for (let round = 0; round < maxRounds && left === 0; round += 1) {
    const names = Array.from({ length: concurrentConnects }, (_, i) => `${round}-${i}`);
    left = await killDuring(names);
    await platform.restart();
    // A connect waits for the seconds that a claim lasts. For a lease, which lasts a minute, it would not: it would fail.
    const again = await Promise.all(names.map(async (key) => await connect(platform, 'draw', { key })));
    expect(new Set(again.map(({ backend_id: id }) => id)).size).toBe(concurrentConnects);
  }
  expect(left).toBeGreaterThan(0);
}, 600_000);
