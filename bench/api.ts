/**
 * The service API on the embedded drivers: requests compared with an Express server in the same run, many open streams, and the same
 * requests with a store full of ended backends. Spawns need no engine: no worker claims the backends, which stay scheduled.
 */
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { silentLog } from '../core/log/log.ts';
import { openSqliteStore } from '../core/store/sqlite/sqlite.ts';
import { backends, becomeTerminated, newBackend } from '../model/backend.ts';
import { modelCollections } from '../model/collections.ts';
import { newBackendId } from '../model/ids.ts';
import { newRoute, routes } from '../model/route.ts';
import { backendPlan } from '../model/testing/backend-plan.ts';
import { connect } from '../test/kit/platform/api-client.ts';
import { startPlatform } from '../test/kit/platform/platform.ts';
import type { TestPlatform } from '../test/kit/platform/platform.ts';
import { apiRow, platformsRow } from './api-load.ts';
import { table } from './measurements.ts';
import type { Row } from './measurements.ts';
import { pushEmptyImage } from './raw-image.ts';
import { statusStreamRows } from './status-streams.ts';

const endedBackends = 100_000;
const routesPerBackend = 10;

/** The time between the spawns of ended backends: all were spawned within the hour after which routes are deleted. */
const spawnedEveryMs = 30;

/** The number of concurrent inserts, which the store writes in one transaction. */
const batch = 1_000;

const settings = { BERTH_LOG_LEVEL: 'warn' };
await using platform = await startPlatform({ settings });
await pushEmptyImage(platform, 'bench');
// Waits until the garbage of the start has been collected, as in a platform that runs for long.
await delay(25_000);
// Status streams first, because a heap that grew under load stays large.
const rows = [...(await statusStreamRows(platform, 'bench')), ...(await requestRows(platform, ''))];
await platform.stop();
await fill(platform);
await platform.restart();
rows.push(...(await requestRows(platform, `, ${endedBackends} ended backends stored`)), await fullStoreRow(platform));
process.stdout.write(`${table(rows)}\n`);

async function requestRows(on: TestPlatform, condition: string): Promise<Row[]> {
  const { backend_id: id } = await connect(on, 'bench');
  const service = `/v2/service/${on.account}/bench`;
  return [
    await apiRow(on, {
      what: `connect that spawns${condition}`,
      method: 'POST',
      path: `${service}/connect`,
      aim: '≥ 0.12 ×',
    }),
    await apiRow(on, { what: `status${condition}`, method: 'GET', path: `/v2/backend/${id}/status`, aim: '≥ 0.5 ×' }),
    await apiRow(on, {
      what: `list of 10 backends${condition}`,
      method: 'GET',
      path: `${service}/backends?limit=10`,
      aim: '',
    }),
  ];
}

/** The cost of a full store, measured against an empty store in the same run. */
async function fullStoreRow(full: TestPlatform): Promise<Row> {
  await using empty = await startPlatform({ settings });
  await pushEmptyImage(empty, 'bench');
  return await platformsRow(
    { ours: full, peer: empty },
    {
      what: `connect that spawns, ${endedBackends} ended backends stored / in an empty store`,
      method: 'POST',
      path: `/v2/service/${full.account}/bench/connect`,
      aim: '≥ 0.9 ×',
    },
  );
}

/** Adds ended backends, each with routes, to the store of a platform that is stopped. */
async function fill({ dataFolder, account }: TestPlatform): Promise<void> {
  const log = silentLog();
  await using store = await openSqliteStore({
    folder: join(dataFolder, 'store'),
    collections: [...modelCollections],
    log,
  });
  const endMs = Date.now();
  for (let done = 0; done < endedBackends; done += batch) {
    await Promise.all(
      Array.from({ length: batch }, async (_, i) => {
        const now = new Date(endMs - (endedBackends - done - i) * spawnedEveryMs);
        const id = newBackendId(now);
        const scheduled = newBackend(backendPlan({ id, account, service: 'bench' }), now);
        await store.insert(backends, becomeTerminated(scheduled, { kind: null, reason: null, exitCode: 0 }, now));
        for (let i = 0; i < routesPerBackend; i += 1)
          await store.insert(routes, newRoute(`${id} ${i}`, { backend: id }));
      }),
    );
  }
}
