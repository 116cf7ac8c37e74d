import { expect, test } from 'vitest';
import { isStartFailure, whyNotStarted } from './start-failure.ts';

test.each([
  [{ failure: 'The image is missing', exitCode: null }, 'The image is missing'],
  [{ terminationReason: 'lost', exitCode: null }, 'The machine on which it was started was lost.'],
  [{ terminationReason: 'external', exitCode: 137 }, 'It was stopped before it was ready.'],
  [{ terminationReason: null, exitCode: 3 }, 'The container exited with code 3 before it was ready.'],
  [
    { terminationReason: null, exitCode: 127 },
    'The container exited with code 127 before it was ready: a program was not found.',
  ],
  [{ terminationReason: null, exitCode: null }, 'The container ended before it was ready.'],
] as const)('%j: %s', (entry, text) => {
  expect(whyNotStarted(entry)).toBe(text);
});

test('the end of a backend that was ready is not a start failure', () => {
  const time = new Date();
  const isFailure = (lastStatus: 'waiting' | 'ready') => isStartFailure({ status: 'terminated', time, lastStatus });
  expect([isFailure('waiting'), isFailure('ready'), isStartFailure({ status: 'ready', time })]).toEqual([
    true,
    false,
    false,
  ]);
});
