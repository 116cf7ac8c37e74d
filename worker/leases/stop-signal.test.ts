import { expect, test } from 'vitest';
import { signalNumber } from './stop-signal.ts';

test.each([
  ['SIGQUIT', 3],
  ['quit', 3],
  ['3', 3],
  ['SIGRTMIN', 34],
  ['SIGRTMIN+3', 37],
  ['RTMAX-1', 63],
  ['', 15],
  ['SIGNOTHING', 15],
  ['0', 15],
  ['65', 15],
  ['SIGRTMIN-1', 15],
  ['SIGRTMAX+1', 15],
])('"%s" is signal %i', (text, number) => {
  expect(signalNumber(text)).toBe(number);
});
