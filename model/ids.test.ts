import { expect, test } from 'vitest';
import { newBackendId } from './ids.ts';

const now = new Date('2026-01-01T00:00:00.000Z');

test('backend IDs are short, of lower-case letters and digits', () => {
  expect(newBackendId()).toMatch(/^[a-z0-9]{18}$/);
  expect(newBackendId(new Date(0))).toMatch(/^000000[a-z0-9]{12}$/);
});

test('backend IDs are in the order of their seconds', () => {
  const times = Array.from({ length: 200 }, (_, i) => new Date(now.getTime() + i * 997_000));
  const ids = times.map((time) => newBackendId(time));
  expect(ids.toSorted()).toStrictEqual(ids);
});

test('backend IDs of one second share nothing but their time', () => {
  const random = Array.from({ length: 2_000 }, () => newBackendId(now).slice(6));
  expect(new Set(random).size).toBe(random.length);
  // Each position has each of the 36 characters: in 2,000 IDs, a position lacks one with a probability of 10^-23.
  for (let at = 0; at < 12; at += 1) expect(new Set(random.map((id) => id[at])).size).toBe(36);
});

test('an ID is valid after 69 years, when times repeat', () => {
  expect(newBackendId(new Date(36 ** 6 * 1000))).toMatch(/^000000[a-z0-9]{12}$/);
  expect(newBackendId(new Date('2100-01-01T00:00:00.000Z'))).toMatch(/^[a-z0-9]{18}$/);
});
