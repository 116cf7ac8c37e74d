import { expect, test } from 'vitest';
import type { TerminationReason } from '../contract/statuses.ts';
import { advance, becomeReady, beginStop, becomeTerminated, newBackend, requestStop } from './backend.ts';
import type { Backend } from './backend.ts';
import { backendPlan } from './testing/backend-plan.ts';
import { currentV1State, v1States } from './v1-state.ts';

const at = (second: number) => new Date(second * 1000);

const backend = newBackend(backendPlan(), at(0));

const loading = advance(backend, 'loading', at(1));
const starting = advance(loading, 'starting', at(2));
const waiting = advance(starting, 'waiting', at(3));
const ready = becomeReady(waiting, { host: '127.0.0.1', port: 1 }, at(4));
const stopping = beginStop(requestStop({ ...ready, node: 'node-1' }, 'soft', 'external', at(5)), at(5));

test('consecutive statuses of one state are one entry, with the time of the first status', () => {
  expect(v1States(becomeTerminated(stopping, { kind: 'soft', reason: 'swept', exitCode: 0 }, at(6)).history)).toEqual([
    { state: 'Loading', time: at(0), position: 0 },
    { state: 'Starting', time: at(2), position: 2 },
    { state: 'Ready', time: at(4), position: 4 },
    { state: 'Swept', time: at(6), position: 6 },
  ]);
  expect(currentV1State(stopping.history)).toEqual({ state: 'Ready', time: at(4), position: 4 });
});

const stopped: readonly [TerminationReason, string][] = [
  ['swept', 'Swept'],
  ['external', 'Terminated'],
  ['startuptimeout', 'TimedOutBeforeReady'],
  ['keyexpired', 'Lost'],
  ['lost', 'Lost'],
];

test.each(stopped)('a backend that ended with the reason %s is %s', (reason, state) => {
  for (const before of [backend, loading, starting, ready]) {
    const ended = becomeTerminated(before, { kind: 'soft', reason, exitCode: null }, at(9));
    expect(currentV1State(ended.history).state).toBe(state);
  }
});

const onItsOwn: readonly [string, Backend, number | null, string][] = [
  ['scheduled', backend, null, 'ErrorLoading'],
  ['loading', loading, null, 'ErrorLoading'],
  ['starting', starting, 1, 'ErrorStarting'],
  ['waiting', waiting, 0, 'Exited'],
  ['waiting', waiting, 1, 'Failed'],
  ['ready', ready, 0, 'Exited'],
  ['ready', ready, 137, 'Failed'],
  ['ready', ready, null, 'Failed'],
];

test.each(onItsOwn)(
  'a backend that ended on its own while %s (%#) has a state by its exit code',
  (_name, before, exitCode, state) => {
    const ended = becomeTerminated(before, { kind: null, reason: null, exitCode }, at(9));
    expect(currentV1State(ended.history).state).toBe(state);
  },
);
