import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { backendChanged } from '../../contract/messages.ts';
import { openInProcessBus } from '../../core/bus/in-process.ts';
import type { Bus } from '../../core/bus/bus.ts';
import { ManualClock } from '../../core/clock/testing/manual-clock.ts';
import { silentLog } from '../../core/log/log.ts';
import type { Store } from '../../core/store/store.ts';
import { advance, backends, becomeTerminated, newBackend } from '../../model/backend.ts';
import type { BackendStatus } from '../../contract/statuses.ts';
import { Statuses } from './statuses.ts';
import { steered, unreachableWhile } from '../../test/kit/ports/steered.ts';
import { backendPlan } from '../../model/testing/backend-plan.ts';
import { openTestStore } from '../../test/kit/ports/test-store.ts';

const log = silentLog();
const now = new Date('2026-01-01T00:00:00.000Z');
const plan = backendPlan();

describe('Statuses', () => {
  let store: Store;
  let bus: Bus;
  let away: { isOff: boolean };
  let published: BackendStatus[];
  let clock: ManualClock;
  let closing: AbortController;
  let statuses: Statuses;
  beforeEach(async () => {
    store = await openTestStore();
    await store.insert(backends, newBackend(plan, now));
    bus = openInProcessBus({ log });
    published = [];
    await bus.subscribe(backendChanged, ({ status }) => published.push(status));
    away = { isOff: false };
    const cut = steered(store, { onCall: unreachableWhile(() => away.isOff) });
    clock = new ManualClock();
    closing = new AbortController();
    statuses = new Statuses({ store: cut, bus, clock, log }, plan.id, closing.signal);
  });
  afterEach(async () => {
    closing.abort();
    await store[Symbol.asyncDispose]();
    await bus[Symbol.asyncDispose]();
  });

  it('writes changes in order, and publishes the results', async () => {
    void statuses.write((backend) => advance(backend, 'loading', now));
    void statuses.write((backend) => advance(backend, 'starting', now));
    const written = await statuses.write((backend) => advance(backend, 'waiting', now));
    expect(written?.history.map(({ status }) => status)).toEqual(['scheduled', 'loading', 'starting', 'waiting']);
    await expect.poll(() => published.at(-1)).toBe('waiting');
    expect(await store.get(backends, plan.id)).toEqual(written);
  });

  it('publishes nothing when nothing changed', async () => {
    await statuses.write((backend) => backend);
    await statuses.write((backend) => advance(backend, 'loading', now));
    await expect.poll(() => published).toEqual(['loading']);
  });

  it('writes pending changes when the store is back', async () => {
    away.isOff = true;
    const loading = statuses.write((backend) => advance(backend, 'loading', now));
    const ended = statuses.write((backend) =>
      becomeTerminated(backend, { kind: null, reason: null, exitCode: 1 }, now),
    );
    await clock.advance(10_000);
    expect((await store.get(backends, plan.id))?.status).toBe('scheduled');
    away.isOff = false;
    await clock.advance(5_000);
    await loading;
    expect((await ended)?.history.map(({ status }) => status)).toEqual(['scheduled', 'loading', 'terminated']);
  });

  it('drops a change that throws, and writes the others', async () => {
    const first = statuses.write((backend) => advance(backend, 'loading', now));
    const wrong = statuses.write(() => {
      throw new TypeError('A bug');
    });
    const last = statuses.write((backend) => advance(backend, 'starting', now));
    await expect(wrong).rejects.toThrow('A bug');
    await first;
    expect((await last)?.history.map(({ status }) => status)).toEqual(['scheduled', 'loading', 'starting']);
    const refused = statuses.write((backend) => ({ ...backend, failure: Symbol('no data') }));
    await expect(refused).rejects.toThrow(TypeError);
    expect((await statuses.write((backend) => advance(backend, 'waiting', now)))?.status).toBe('waiting');
  });

  it('rejects when the worker closes', async () => {
    away.isOff = true;
    const written = statuses.write((backend) => advance(backend, 'loading', now));
    await clock.advance(1_000);
    closing.abort(new Error('closing'));
    await expect(written).rejects.toThrow('closing');
    await statuses.settled();
  });
});
