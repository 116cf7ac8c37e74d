import { expect, test } from 'vitest';
import { parseRequired, unmet } from './required.ts';
import type { Missing } from './required.ts';

const missing: Missing[] = [
  { part: 'stores', what: 'tests that need MongoDB and Redis', why: 'there is no redis-server' },
];
const skippedTests = ['a.test.ts: on MongoDB'];

test('without the variable, nothing is required', () => {
  expect(unmet(parseRequired(undefined), missing, skippedTests)).toEqual([]);
});

test('all: every missing part and every skipped test fails the run', () => {
  expect(unmet(parseRequired('all'), missing, skippedTests)).toEqual([
    'tests that need MongoDB and Redis: there is no redis-server',
    'a.test.ts: on MongoDB',
  ]);
  expect(unmet(parseRequired('all'), [], [])).toEqual([]);
});

test('some parts: only these fail the run', () => {
  expect(unmet(parseRequired('docker,stores'), missing, skippedTests)).toHaveLength(1);
  expect(unmet(parseRequired('docker'), missing, skippedTests)).toEqual([]);
});

test('a misspelt part is an error', () => {
  expect(() => parseRequired('docker,redis')).toThrow('BERTH_TEST_REQUIRE: "redis" is not one of all, docker');
});
