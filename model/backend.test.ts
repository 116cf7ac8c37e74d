import { describe, expect, test } from 'vitest';
import { backendStatuses } from '../contract/statuses.ts';
import {
  advance,
  assign,
  becomeReady,
  beginStop,
  becomeTerminated,
  becomeLost,
  terminationOf,
  isEnding,
  newBackend,
  requestStop,
  sweepIdle,
  touch,
} from './backend.ts';
import type { Backend } from './backend.ts';
import { ApiError } from './api-error.ts';
import { backendPlan } from './testing/backend-plan.ts';

const start = new Date('2026-01-01T00:00:00.000Z');
const later = (seconds: number) => new Date(start.getTime() + seconds * 1000);
const address = { host: '10.1.0.2', port: 8080 };
const onItsOwn = { kind: null, reason: null, exitCode: 0 };

function scheduled(): Backend {
  return newBackend(backendPlan({ env: { SECRET: 'x' } }), start);
}

function ready(): Backend {
  const steps = (['loading', 'starting', 'waiting'] as const).entries();
  let backend = assign(scheduled(), 'node-1');
  for (const [i, status] of steps) backend = advance(backend, status, later(i + 1));
  return becomeReady(backend, address, later(4));
}

describe('the idle time', () => {
  const touched = touch(ready(), later(10));

  test('restarts with every issued connection, except within a second of the last one', () => {
    expect(touched.touchedAt).toEqual(later(10));
    expect(touch(touched, later(10.9))).toBe(touched);
    expect(touch(touched, later(11)).touchedAt).toEqual(later(11));
    const short = { ...touched, maxIdleSeconds: 2 };
    expect(touch(short, later(10.1))).toBe(short);
    expect(touch(short, later(10.2)).touchedAt).toEqual(later(10.2));
  });

  test('restarts even if the clock was set back', () => {
    expect(touch(touched, later(5)).touchedAt).toEqual(later(5));
  });

  test('ends with a stop, unless a connection was issued since the decision', () => {
    expect(sweepIdle(touched, later(10), later(310))).toMatchObject({
      status: 'terminating',
      stop: { kind: 'soft', reason: 'swept' },
    });
    expect(sweepIdle(ready(), undefined, later(310)).status).toBe('terminating');
    for (const lastTouch of [later(9), undefined]) expect(sweepIdle(touched, lastTouch, later(310))).toBe(touched);
  });

  test('does not restart when the backend is ending', () => {
    const swept = sweepIdle(ready(), undefined, later(310));
    const ending = [
      swept,
      requestStop(ready(), 'soft', 'external', later(5)),
      becomeTerminated(ready(), onItsOwn, later(5)),
    ];
    for (const each of ending) {
      expect(touch(each, later(311))).toBe(each);
      expect(sweepIdle(each, undefined, later(311))).toBe(each);
    }
  });
});

describe('the lifecycle', () => {
  test('passes every status in order and keeps the whole history', () => {
    const stopping = beginStop(requestStop(ready(), 'soft', 'swept', later(5)), later(6));
    const ended = becomeTerminated(stopping, { ...terminationOf(stopping, 0) }, later(7));
    expect(ended.history.map(({ status }) => status)).toEqual(
      backendStatuses.filter((each) => each !== 'hard-terminating'),
    );
    expect(ended.history.map(({ time }) => time.getTime())).toEqual(
      [0, 1, 2, 3, 4, 6, 7].map((s) => later(s).getTime()),
    );
    expect(ended.history.at(-1)).toMatchObject({
      lastStatus: 'ready',
      terminationKind: 'soft',
      terminationReason: 'swept',
      exitCode: 0,
    });
  });

  test('never goes back, whatever the transition', () => {
    const moves: ((backend: Backend) => Backend)[] = [
      (backend) => assign(backend, 'node-2'),
      (backend) => advance(backend, 'loading', later(9)),
      (backend) => advance(backend, 'starting', later(9)),
      (backend) => advance(backend, 'waiting', later(9)),
      (backend) => becomeReady(backend, address, later(9)),
      (backend) => beginStop(backend, later(9)),
      (backend) => becomeTerminated(backend, onItsOwn, later(9)),
    ];
    const rank = (backend: Backend) => backendStatuses.indexOf(backend.status);
    const seen = new Set<string>();
    const walk = (backend: Backend, depth: number) => {
      seen.add(backend.status);
      for (const move of depth > 0 ? moves : []) {
        const moved = move(backend);
        expect(rank(moved)).toBeGreaterThanOrEqual(rank(backend));
        expect(moved.history.slice(0, backend.history.length)).toEqual(backend.history);
        if (rank(moved) === rank(backend)) expect(moved.history).toEqual(backend.history);
        walk(moved, depth - 1);
      }
    };
    walk(scheduled(), 4);
    walk(requestStop(ready(), 'soft', 'external', later(5)), 3);
    walk(requestStop(ready(), 'hard', 'external', later(5)), 3);
    expect([...seen].toSorted()).toEqual([...backendStatuses].toSorted());
  });

  test('may skip statuses', () => {
    expect(becomeTerminated(scheduled(), onItsOwn, later(1)).history.at(-1)).toMatchObject({
      status: 'terminated',
      lastStatus: 'scheduled',
    });
    expect(becomeReady(assign(scheduled(), 'node-1'), address, later(1)).status).toBe('ready');
  });

  test('ends once: later transitions change nothing', () => {
    const ended = becomeLost(ready(), later(5));
    expect(becomeTerminated(ended, onItsOwn, later(6))).toBe(ended);
    expect(beginStop(ended, later(6))).toBe(ended);
    expect(becomeReady(ended, address, later(6))).toBe(ended);
    expect(ended.live).toBe(false);
  });

  test('has times that never decrease, whatever the clocks of the writers', () => {
    const moves: ((backend: Backend, now: Date) => Backend)[] = [
      (backend, now) => advance(backend, 'loading', now),
      (backend, now) => becomeReady(backend, address, now),
      (backend, now) => beginStop(requestStop(backend, 'soft', 'swept', now), now),
      (backend, now) => becomeTerminated(backend, onItsOwn, now),
    ];
    let backend = assign(scheduled(), 'node-1');
    for (const [i, move] of moves.entries()) backend = move(backend, later(i % 2 === 0 ? -60 : 60));
    expect(backend.history.map(({ time }) => time)).toEqual([0, 0, 60, 60, 60].map(later));
    expect(backend.readyAt).toEqual(later(60));
    const early = becomeReady(assign(scheduled(), 'node-1'), address, later(-60));
    expect([early.readyAt, early.history.at(-1)?.time]).toEqual([start, start]);
  });

  test('drops the variables at the end', () => {
    expect(scheduled().env).toEqual({ SECRET: 'x' });
    expect('env' in becomeTerminated(ready(), onItsOwn, later(5))).toBe(false);
  });
});

describe('a node', () => {
  test('claims a waiting backend, which no other node can claim then', () => {
    const claimed = assign(scheduled(), 'node-1');
    expect(claimed.node).toBe('node-1');
    expect(assign(claimed, 'node-2')).toBe(claimed);
  });

  test('does not claim a backend that has ended', () => {
    const ended = becomeTerminated(scheduled(), onItsOwn, later(1));
    expect(assign(ended, 'node-1')).toBe(ended);
  });
});

describe('a stop', () => {
  test('ends a backend that no node has claimed at once', () => {
    const stopped = requestStop(scheduled(), 'soft', 'external', later(1));
    expect(stopped.live).toBe(false);
    expect(stopped.history.at(-1)).toMatchObject({
      terminationKind: 'soft',
      terminationReason: 'external',
      exitCode: null,
    });
  });

  test('that is requested again changes nothing', () => {
    const requested = requestStop(ready(), 'soft', 'external', later(5));
    expect(requestStop(requested, 'soft', 'swept', later(6))).toBe(requested);
  });

  test('can be made harder, keeps its first reason, and never gets softer', () => {
    const soft = beginStop(requestStop(ready(), 'soft', 'swept', later(5)), later(5));
    const hard = requestStop(soft, 'hard', 'external', later(6));
    expect(hard.stop).toMatchObject({ kind: 'hard', reason: 'swept' });
    expect(requestStop(hard, 'soft', 'external', later(7))).toBe(hard);
    expect(beginStop(hard, later(7)).status).toBe('hard-terminating');
  });

  test('of a backend that has ended is rejected', () => {
    const ended = becomeTerminated(ready(), onItsOwn, later(5));
    expect(() => requestStop(ended, 'hard', 'external', later(6))).toThrow(
      expect.objectContaining({ name: ApiError.name, code: 'BackendNotRunning' }) as Error,
    );
  });

  test('counts as ending once it is requested', () => {
    expect(isEnding(ready())).toBe(false);
    expect(isEnding(requestStop(ready(), 'soft', 'external', later(5)))).toBe(true);
  });

  test('that no node has begun is not the reason of an exit', () => {
    const requested = requestStop(ready(), 'soft', 'external', later(5));
    expect(terminationOf(requested, 3)).toEqual({ kind: null, reason: null, exitCode: 3 });
  });
});
