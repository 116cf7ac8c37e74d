import { expect, test } from 'vitest';
import { ago, parseDuration } from './time-text.ts';

test.each([
  ['2026-11-23T12:00:00Z', '0 s ago'],
  ['2026-11-23T11:59:01Z', '59 s ago'],
  ['2026-11-23T11:00:01Z', '59 min ago'],
  ['2026-11-22T12:00:01Z', '23 h ago'],
  ['2026-11-13T12:00:00Z', '10 d ago'],
  ['2026-11-23T12:00:05Z', '0 s ago'],
  [null, '-'],
])('%s is %s', (time, text) => {
  expect(ago(time, Date.parse('2026-11-23T12:00:00Z'))).toBe(text);
});

test.each([
  ['90', 90],
  ['90s', 90],
  ['15m', 900],
  ['12h', 43_200],
  ['30d', 2_592_000],
  ['soon', undefined],
  ['1.5h', undefined],
  ['-1', undefined],
])('the duration %s has %s seconds', (text, seconds) => {
  expect(parseDuration(text)).toBe(seconds);
});
