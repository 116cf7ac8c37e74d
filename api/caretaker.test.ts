import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { openInProcessBus } from '../core/bus/in-process.ts';
import { ManualClock } from '../core/clock/manual-clock.ts';
import { silentLog } from '../core/log/log.ts';
import { openSqliteStore } from '../core/store/sqlite.ts';
import type { Store } from '../core/store/store.ts';
import { assign, backends, newBackend } from '../model/backend.ts';
import type { Backend } from '../model/backend.ts';
import { modelCollections } from '../model/collections.ts';
import { newBackendId } from '../model/ids.ts';
import { nodes } from '../model/node.ts';
import { takeCare } from './caretaker.ts';
import { spawnRules } from './testing/spawn-rules.ts';

const log = silentLog();
const bus = openInProcessBus({ log });
const closing = new AsyncDisposableStack();
let store: Store;

beforeAll(async () => {
  const folder = await mkdtemp(join(tmpdir(), 'berth-caretaker-'));
  closing.defer(() => rm(folder, { recursive: true }));
  store = closing.use(await openSqliteStore({ folder, collections: [...modelCollections], log }));
});

afterAll(() => closing.disposeAsync());

async function insertBackend(ageSeconds: number, node?: string): Promise<string> {
  const plan = {
    account: 'acme',
    service: 'draw',
    environment: 'default',
    cluster: 'default',
    imageDigest: 'sha256:0',
  };
  const createdAt = new Date(Date.now() - ageSeconds * 1000);
  const backend = newBackend({ ...plan, id: newBackendId(), limits: {}, maxIdleSeconds: 1, port: 8080 }, createdAt);
  await store.insert(backends, node === undefined ? backend : assign(backend, node));
  return backend.id;
}

async function insertNode(id: string, leaseMs: number): Promise<void> {
  const now = new Date();
  const leaseUntil = new Date(now.getTime() + leaseMs);
  await store.insert(nodes, { id, cluster: 'default', leaseUntil, startedAt: now, engineVersion: '28' });
}

async function look(id: string): Promise<Backend['history'][number] | undefined> {
  return (await store.get(backends, id))?.history.at(-1);
}

const care = async (nodesHadTheirChance: boolean) =>
  await takeCare({ store, bus, clock: new ManualClock(), log, rules: spawnRules }, nodesHadTheirChance);

test('a backend that no node took in time ends as "startuptimeout", others wait on', async () => {
  const [late, early, taken] = [await insertBackend(301), await insertBackend(299), await insertBackend(301, 'node-1')];
  await care(true);
  expect(await look(late)).toMatchObject({ status: 'terminated', terminationReason: 'startuptimeout' });
  expect(await look(early)).toMatchObject({ status: 'scheduled' });
  expect(await look(taken)).toMatchObject({ status: 'scheduled' });
});

test('backends of a silent node are lost, once nodes had their chance to show that they live', async () => {
  await insertNode('silent', -1);
  await insertNode('alive', 60_000);
  const [lost, kept] = [await insertBackend(1, 'silent'), await insertBackend(1, 'alive')];
  await care(false);
  expect(await look(lost)).toMatchObject({ status: 'scheduled' });
  await care(true);
  expect(await look(lost)).toMatchObject({ status: 'terminated', terminationReason: 'lost', terminationKind: null });
  expect(await look(kept)).toMatchObject({ status: 'scheduled' });
});
