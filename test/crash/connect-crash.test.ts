/** The platform is killed (kill -9) during connects, some of which have claimed their key but not yet written their backend. */
import { join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { silentLog } from '../../core/log/log.ts';
import { openDatabase } from '../../core/store/sqlite/database.mjs';
import { openSqliteStore } from '../../core/store/sqlite/sqlite.ts';
import { backends } from '../../model/backend.ts';
import { modelCollections } from '../../model/collections.ts';
import { keys } from '../../model/key.ts';
import { connect } from '../kit/platform/api-client.ts';
import { startPlatform } from '../kit/platform/platform.ts';
import { RegistryClient } from '../kit/platform/registry-client.ts';

const concurrentConnects = 100;

/** Upper bound of rounds: a kill may come after the backends of all claims were written. */
const maxRounds = 20;

test('a connect to a key whose claimer died succeeds a moment later', async () => {
  await using platform = await startPlatform();
  const client = new RegistryClient(platform);
  await client.push(client.image('draw', 'latest', [RegistryClient.layer(100)]));

  const folder = join(platform.dataFolder, 'store');

  /** Kills the platform as soon as one of many connects has claimed its key. Returns how many claims have no backend. */
  const killDuring = async (names: readonly string[]): Promise<number> => {
    const watched = openDatabase(join(folder, 'berth.db'));
    const claimed = watched.prepare(`SELECT (SELECT count(*) FROM keys) - (SELECT count(*) FROM backends) AS count`);
    const finished = new AbortController();
    const settled = Promise.allSettled(names.map(async (key) => await connect(platform, 'draw', { key })));
    void settled.then(() => finished.abort());
    while (!finished.signal.aborted && !claimed.get()?.['count']) await setImmediate();
    await platform.kill();
    watched.close();
    await settled;
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
    // A connect waits until a claim expires, which takes seconds. It would fail if a lease of a minute had to expire.
    const again = await Promise.all(names.map(async (key) => await connect(platform, 'draw', { key })));
    expect(new Set(again.map(({ backend_id: id }) => id)).size).toBe(concurrentConnects);
  }
  expect(left).toBeGreaterThan(0);
}, 600_000);
