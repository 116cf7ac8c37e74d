/** The key of a container that has enforced its lease, while its worker was frozen, is not renewed. */
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { TerminationKind } from '../../contract/statuses.ts';
import { ManualClock } from '../../core/clock/testing/manual-clock.ts';
import { silentLog } from '../../core/log/log.ts';
import type { Store } from '../../core/store/store.ts';
import { assign, newBackend, requestStop } from '../../model/backend.ts';
import type { Backend } from '../../model/backend.ts';
import { claimKey, keyId, keys, renewEveryMs } from '../../model/key.ts';
import { temporaryFolder } from '../../test/kit/machine/temporary-folder.ts';
import type { TemporaryFolder } from '../../test/kit/machine/temporary-folder.ts';
import { steered } from '../../test/kit/ports/steered.ts';
import { openTestStore } from '../../test/kit/ports/test-store.ts';
import { ContainerLease, bootTimeMs } from './container-lease.ts';
import { keepKey } from './leases.ts';

const keyName = keyId('acme', 'draw', 'room');

let folder: TemporaryFolder;
let real: Store;
let clock: ManualClock;
let ending: AbortController;
/** Runs after each call of the worker's store. */
let afterCall: (method: string) => Promise<void>;
/** The stops that the renewals asked for. */
let stops: TerminationKind[];
let lease: ContainerLease;
beforeEach(async () => {
  folder = await temporaryFolder();
  real = await openTestStore();
  clock = new ManualClock(new Date());
  ending = new AbortController();
  afterCall = async () => {};
  stops = [];
  lease = new ContainerLease({ folder: folder.path, engineFolder: folder.path, programs: {} });
});
afterEach(async () => {
  ending.abort();
  await real[Symbol.asyncDispose]();
  await folder[Symbol.asyncDispose]();
});

/** Begins to renew the key of a backend with a running container, and waits for the first renewal. */
async function beginRenewing({ change = (backend: Backend) => backend, hasContainer = true } = {}) {
  const now = await real.now();
  const key = claimKey(undefined, keyName, 'backend00001', now);
  await real.insert(keys, key);
  const plan = { account: 'acme', service: 'draw', environment: 'default', cluster: 'default', limits: {}, port: 8080 };
  const held = { key: 'room', fencingToken: key.fencingToken, imageDigest: '', maxIdleSeconds: 300 };
  const backend = change(assign(newBackend({ ...plan, ...held, id: key.backend }, now), 'node-1'));
  const store = steered(real, {
    isShared: true,
    onCall: async ({ method, run }) => {
      const answer = await run();
      await afterCall(method);
      return answer;
    },
  });
  const container = hasContainer ? {} : undefined;
  const run = { id: backend.id, backend, container, containerLease: lease, stopKind: undefined, signal: ending.signal };
  const worker = { store, clock, machineClock: clock, log: silentLog() };
  await keepKey(worker, run, (kind) => void stops.push(kind));
}

/** Sets the deadlines of the container to this much from now, as they are after a freeze of the worker. */
async function setDeadlines(softInMs: number, hardInMs: number): Promise<void> {
  await writeFile(join(folder.path, 'lease'), `${bootTimeMs() + softInMs} ${bootTimeMs() + hardInMs} 15\n`);
}

const leaseUntil = async () => (await real.get(keys, keyName))?.leaseUntil;
const deadlines = async () => await readFile(join(folder.path, 'lease'), 'utf8');

/** Waits until the container has been asked to stop. */
async function freezeOverDeadline(): Promise<void> {
  const softMs = Number((await deadlines()).split(' ')[0]);
  while (bootTimeMs() < softMs) await delay(5);
}

test.each([
  ['is stopping', 'soft', -1_000],
  ['has ended', 'hard', -20_000],
] as const)('a key is not renewed after a freeze in which its container %s', async (_what, kind, softInMs) => {
  await beginRenewing();
  await setDeadlines(softInMs, softInMs + 15_000);
  const before = [await leaseUntil(), await deadlines()];
  await clock.freeze(renewEveryMs);
  await expect.poll(() => stops).toEqual([kind]);
  expect([await leaseUntil(), await deadlines()]).toEqual(before);
});

test('a key is not renewed after a freeze between the two calls of a renewal', async () => {
  await beginRenewing();
  await setDeadlines(300, 15_300);
  const before = [await leaseUntil(), await deadlines()];
  afterCall = async (method) => {
    if (method === 'now') await freezeOverDeadline();
  };
  await clock.advance(renewEveryMs);
  await expect.poll(() => stops).toEqual(['soft']);
  expect([await leaseUntil(), await deadlines()]).toEqual(before);
});

test('a backend is stopped after a freeze between the renewal of its key and that of its container', async () => {
  await beginRenewing();
  await setDeadlines(300, 15_300);
  const before = await deadlines();
  afterCall = async (method) => {
    if (method === 'update') await freezeOverDeadline();
  };
  await clock.advance(renewEveryMs);
  await expect.poll(() => stops).toEqual(['soft']);
  expect(await deadlines()).toEqual(before);
});

test.each([
  ['whose container does not exist yet', { hasContainer: false }],
  ['that is stopping, and saves', { change: (backend: Backend) => requestStop(backend, 'soft', 'swept', new Date()) }],
])('after a freeze, the key of a backend is renewed %s', async (_what, options) => {
  await beginRenewing(options);
  await setDeadlines(-20_000, -5_000);
  const before = await deadlines();
  await clock.freeze(renewEveryMs);
  await expect.poll(deadlines).not.toBe(before);
  expect(stops).toEqual([]);
});
