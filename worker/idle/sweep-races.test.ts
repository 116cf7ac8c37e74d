import { Registry } from 'prom-client';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openInProcessBus } from '../../core/bus/in-process.ts';
import type { Bus } from '../../core/bus/bus.ts';
import { ManualClock } from '../../core/clock/testing/manual-clock.ts';
import { silentLog } from '../../core/log/log.ts';
import type { Store } from '../../core/store/store.ts';
import { assign, backends, becomeReady, isEnding, newBackend, touch } from '../../model/backend.ts';
import type { Backend } from '../../model/backend.ts';
import { Connections } from './connections.ts';
import { newRun } from '../lifecycle/run.ts';
import type { WorkerContext } from '../context.ts';
import { openWorkerMetrics } from '../metrics.ts';
import type { Run } from '../lifecycle/run.ts';
import { beginSweeping } from './sweep.ts';
import { backendPlan } from '../../model/testing/backend-plan.ts';
import { Random } from '../../test/fuzz/random.ts';
import { openTestStore } from '../../test/kit/ports/test-store.ts';

const log = silentLog();
const maxIdleSeconds = 5;
const rounds = 40;
const stepMs = 50;

/** An answered connect: its time, and the document that the store returned. */
interface Answer {
  readonly askedAt: Date;
  readonly backend: Backend | undefined;
}

describe('connects during a sweep', () => {
  let store: Store;
  let bus: Bus;
  beforeAll(async () => {
    store = await openTestStore();
    bus = openInProcessBus({ log });
  });
  afterAll(async () => {
    await store?.[Symbol.asyncDispose]();
    await bus?.[Symbol.asyncDispose]();
  });

  it('never sweep a backend whose URL a client got within its idle time', async () => {
    const seen = { swept: 0, spared: 0, refused: 0 };
    for (let seed = 1; seed <= rounds; seed++) {
      const { swept, answers, spared } = await playRound({ store, bus, seed });
      const given = answers.filter(({ backend }) => backend && !isEnding(backend));
      const sweptAt = swept.history.find(({ status }) => status === 'terminating')?.time.getTime() ?? 0;
      const idleMs = sweptAt - Math.max(...given.map(({ askedAt }) => askedAt.getTime()));
      expect({ seed, ...swept.history.at(-1) }).toMatchObject({ terminationReason: 'swept', lastStatus: 'ready' });
      // A touch may count for a tenth of the idle time.
      expect({ seed, isInTime: idleMs >= 0.9 * maxIdleSeconds * 1000 }).toEqual({ seed, isInTime: true });
      seen.swept += 1;
      seen.spared += spared;
      seen.refused += answers.length - given.length;
    }
    // Every possible outcome occurred.
    expect(Object.values(seen)).not.toContain(0);
  });
});

/** Connects around the end of each idle time, until the backend is swept. The writes of both sides are slow. */
async function playRound({ store, bus, seed }: { store: Store; bus: Bus; seed: number }) {
  const random = new Random(seed);
  const clock = new ManualClock();
  const slow = slowStore(store, clock, () => random.below(400));
  const { worker, run } = await watchedBackend({ store: slow.store, bus, clock, id: `backend${seed}` });
  const sweeping = beginSweeping(worker);
  const answers: Promise<Answer>[] = [];
  const connect = async (): Promise<Answer> => {
    const askedAt = clock.now();
    const backend = await slow.store.update(backends, run.id, (current) => touch(current, askedAt));
    return { askedAt, backend };
  };
  let nextConnectMs = random.below(1_000);
  for (let step = 0; worker.runs.size > 0; step++) {
    if (step > 10_000) throw new Error('The backend is never swept');
    worker.connections.report('proxy', {}, clock.now());
    nextConnectMs -= stepMs;
    // A dozen at most, so that every round ends.
    if (nextConnectMs <= 0 && answers.length < 12) {
      answers.push(connect());
      nextConnectMs = (maxIdleSeconds - 0.6) * 1_000 + random.below(1_000);
    }
    await clock.advance(stepMs);
    await slow.written();
  }
  const swept = await store.get(backends, run.id);
  if (!swept) throw new Error('The backend has gone');
  answers.push(connect());
  await clock.advance(1_000);
  await slow.written();
  const all = await Promise.all(answers);
  await sweeping[Symbol.asyncDispose]();
  return { swept, answers: all, spared: slow.spared() };
}

async function watchedBackend(on: { store: Store; bus: Bus; clock: ManualClock; id: string }) {
  const { store, bus, clock, id } = on;
  const plan = backendPlan({ id, maxIdleSeconds });
  const address = { host: '10.0.0.2', port: 8080 };
  const backend = becomeReady(assign(newBackend(plan, clock.now()), 'node-1'), address, clock.now());
  const insertion = store.insert(backends, backend);
  await clock.advance(1_000);
  await insertion;
  const runs = new Map<string, Run>();
  const metrics = openWorkerMetrics(new Registry(), {
    statuses: () => [],
    engineAnswers: () => true,
    offeredMemory: () => 0,
    promisedMemory: () => 0,
  });
  // There is no container: the end is written without a call to an engine.
  const worker = {
    store,
    bus,
    clock,
    log,
    runs,
    metrics,
    connections: new Connections((each) => runs.has(each)),
    closing: new AbortController().signal,
    settings: { startTimeoutSeconds: 30 },
  } as unknown as WorkerContext;
  return { worker, run: newRun(worker, backend) };
}

/** A store whose writes are delayed, and which counts the sweeps that a touch prevented. */
function slowStore(store: Store, clock: ManualClock, delayMs: () => number) {
  let spared = 0;
  const writing = new Set<Promise<unknown>>();
  const slow = new Proxy(store, {
    get(target, property) {
      const member: unknown = Reflect.get(target, property, target);
      if (property === 'insert') {
        return async (...args: Parameters<Store['insert']>) => {
          await clock.sleep(delayMs());
          await store.insert(...args);
        };
      }
      if (property !== 'update') return typeof member === 'function' ? member.bind(target) : member;
      return async (collection: typeof backends, id: string, change: (current: Backend) => Backend) => {
        await clock.sleep(delayMs());
        let isUnchanged = false;
        const writes = store.update(collection, id, (current) => {
          const next = change(current);
          isUnchanged = next === current && current.live && current.stop === undefined;
          return next;
        });
        writing.add(writes);
        const written = await writes;
        writing.delete(writes);
        if (isUnchanged) spared += 1;
        return written;
      };
    },
  });
  return {
    store: slow,
    spared: () => spared,
    /** The disk does not follow the test clock: resolves when all writes are done. */
    written: async () => {
      while (writing.size > 0) await Promise.all(writing);
    },
  };
}
