import { afterAll, beforeAll, expect, test } from 'vitest';
import { openInProcessBus } from '../../core/bus/in-process.ts';
import { ManualClock } from '../../core/clock/testing/manual-clock.ts';
import { openLog, silentLog } from '../../core/log/log.ts';
import type { Log } from '../../core/log/log.ts';
import type { Store } from '../../core/store/store.ts';
import { assign, backends, newBackend } from '../../model/backend.ts';
import type { Backend } from '../../model/backend.ts';
import { newBackendId } from '../../model/ids.ts';
import { keyId, keys } from '../../model/key.ts';
import { nodes } from '../../model/node.ts';
import { backendPlan } from '../../model/testing/backend-plan.ts';
import { OrphanReaper } from './orphan-reaper.ts';
import { spawnRules } from '../testing/spawn-rules.ts';
import { steered } from '../../test/kit/ports/steered.ts';
import { openTestStore } from '../../test/kit/ports/test-store.ts';

const log = silentLog();
const bus = openInProcessBus({ log });
const closing = new AsyncDisposableStack();
let store: Store;

beforeAll(async () => {
  store = closing.use(await openTestStore());
});

afterAll(() => closing.disposeAsync());

async function insertBackend(ageSeconds: number, node?: string): Promise<string> {
  const createdAt = new Date(Date.now() - ageSeconds * 1000);
  const backend = newBackend(backendPlan({ id: newBackendId() }), createdAt);
  await store.insert(backends, node === undefined ? backend : assign(backend, node));
  return backend.id;
}

async function insertNode(id: string, leaseMs: number): Promise<void> {
  const now = new Date();
  const leaseUntil = new Date(now.getTime() + leaseMs);
  await store.insert(nodes, { id, cluster: 'default', leaseUntil, startedAt: now, engineVersion: '28' });
}

async function lastEntry(id: string): Promise<Backend['history'][number] | undefined> {
  return (await store.get(backends, id))?.history.at(-1);
}

const newReaper = (more: { store?: Store; ownNode?: () => string; log?: Log } = {}) =>
  new OrphanReaper({ store, bus, clock: new ManualClock(), log, rules: spawnRules, ...more });

/** Runs passes, by default enough to end all orphaned backends. */
async function runPasses(reaper: OrphanReaper, passes = 60): Promise<void> {
  for (let pass = 0; pass < passes; pass += 1) await reaper.pass();
}

const renew = async (id: string, leaseUntil = new Date(Date.now() + 60_000)) =>
  await store.update(nodes, id, (node) => ({ ...node, leaseUntil }));

test('a backend that no node claimed in time ends as "startuptimeout", others keep waiting', async () => {
  const [late, early, claimed] = [
    await insertBackend(301),
    await insertBackend(240),
    await insertBackend(301, 'node-1'),
  ];
  await runPasses(newReaper());
  expect(await lastEntry(late)).toMatchObject({ status: 'terminated', terminationReason: 'startuptimeout' });
  expect(await lastEntry(early)).toMatchObject({ status: 'scheduled' });
  expect(await lastEntry(claimed)).toMatchObject({ status: 'scheduled' });
});

test('a pass does not read the documents of backends that wait for a node', async () => {
  await insertBackend(1);
  const reads: string[] = [];
  const counting = steered(store, {
    onCall: async ({ method, collection, run }) => {
      if (collection === backends.name) reads.push(method);
      return await run();
    },
  });
  await newReaper({ store: counting }).pass();
  expect(reads).not.toContain('find');
});

test('after a freeze, waiting backends are not ended before nodes had time to claim them', async () => {
  const waiting = await insertBackend(301);
  await runPasses(newReaper(), 59);
  expect(await lastEntry(waiting)).toMatchObject({ status: 'scheduled' });
  await runPasses(newReaper());
  expect(await lastEntry(waiting)).toMatchObject({ status: 'terminated' });
});

test('backends of a silent node are lost after nodes had time to renew', async () => {
  await insertNode('silent', -1);
  await insertNode('alive', 60_000);
  const [lost, kept] = [await insertBackend(1, 'silent'), await insertBackend(1, 'alive')];
  const reaper = newReaper();
  await runPasses(reaper, 11);
  expect(await lastEntry(lost)).toMatchObject({ status: 'scheduled' });
  await runPasses(reaper, 1);
  expect(await lastEntry(lost)).toMatchObject({
    status: 'terminated',
    terminationReason: 'lost',
    terminationKind: null,
  });
  expect(await lastEntry(kept)).toMatchObject({ status: 'scheduled' });
});

test('after a freeze of this process, a node that has not renewed yet is not considered dead', async () => {
  await insertNode('frozen-too', 60_000);
  const backend = await insertBackend(1, 'frozen-too');
  const reaper = newReaper();
  await runPasses(reaper, 2);
  // The freeze lasts longer than a lease, so the lease has expired by the store's time at the next pass.
  await renew('frozen-too', new Date(Date.now() - 1));
  await runPasses(reaper, 2);
  expect(await lastEntry(backend)).toMatchObject({ status: 'scheduled' });
  await renew('frozen-too');
  await runPasses(reaper);
  expect(await lastEntry(backend)).toMatchObject({ status: 'scheduled' });
});

test('a node that renews while its backends are being ended keeps the rest', async () => {
  await insertNode('late', -1);
  const [first, second] = [await insertBackend(1, 'late'), await insertBackend(1, 'late')];
  const renewing = new Proxy(store, {
    get(target, name) {
      const member: unknown = Reflect.get(target, name, target);
      if (typeof member !== 'function') return member;
      return async (...args: unknown[]) => {
        const answer: unknown = await Reflect.apply(member, target, args);
        if (name === 'update' && (args[0] as { name: string }).name === backends.name) await renew('late');
        return answer;
      };
    },
  });
  await runPasses(newReaper({ store: renewing }));
  const statuses = [(await lastEntry(first))?.status, (await lastEntry(second))?.status];
  expect(new Set(statuses)).toEqual(new Set(['scheduled', 'terminated']));
});

test('a node whose worker runs in this process is never considered dead, whatever its lease', async () => {
  await insertNode('own', -1);
  const backend = await insertBackend(1, 'own');
  await runPasses(newReaper({ ownNode: () => 'own' }));
  expect(await lastEntry(backend)).toMatchObject({ status: 'scheduled' });
});

test('after a failure of the store, nodes have the full time to renew', async () => {
  await insertNode('cut-off', -1);
  const backend = await insertBackend(1, 'cut-off');
  let isUnavailable = false;
  const failing = new Proxy(store, {
    get(target, name) {
      const member: unknown = Reflect.get(target, name, target);
      if (name === 'update' && isUnavailable) return async () => await Promise.reject(new Error('Unavailable'));
      return typeof member === 'function' ? member.bind(target) : member;
    },
  });
  const reaper = newReaper({ store: failing });
  await runPasses(reaper, 11);
  isUnavailable = true;
  await expect(reaper.pass()).rejects.toThrow('Unavailable');
  isUnavailable = false;
  await runPasses(reaper, 11);
  expect(await lastEntry(backend)).toMatchObject({ status: 'scheduled' });
  await runPasses(reaper, 1);
  expect(await lastEntry(backend)).toMatchObject({ status: 'terminated' });
});

test('the log reports that the orphan reaper ended a backend, and why', async () => {
  await insertNode('away', -1);
  const backend = await insertBackend(1, 'away');
  const lines: Record<string, unknown>[] = [];
  const written = openLog('info', { write: (line) => void lines.push(JSON.parse(line) as (typeof lines)[number]) });
  await runPasses(newReaper({ log: written }));
  expect(lines).toMatchObject([
    { msg: 'Backend ended', backend, node: 'away', endedBy: 'orphan-reaper', kind: null, reason: 'lost' },
  ]);
});

test('the holder of a key is not lost before the lease of the key has expired, too', async () => {
  const id = await insertBackend(60, 'node-keyed');
  const key = { key: 'room', fencingToken: 7 };
  await store.update(backends, id, (backend) => ({ ...backend, ...key }));
  await insertNode('node-keyed', -1);
  const name = keyId('acme', 'draw', 'room');
  const leaseUntil = new Date(Date.now() + 60_000);
  await store.insert(keys, { id: name, backend: id, fencingToken: 7, leaseUntil, claimUntil: leaseUntil });
  await runPasses(newReaper());
  expect(await lastEntry(id)).toMatchObject({ status: 'scheduled' });
  await store.update(keys, name, (current) => ({ ...current, leaseUntil: new Date(Date.now() - 1) }));
  await runPasses(newReaper());
  expect(await lastEntry(id)).toMatchObject({ status: 'terminated', terminationReason: 'lost' });
});
