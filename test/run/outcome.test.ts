import { expect, test } from 'vitest';
import { commandFor } from './outcome.ts';

test('the command that repeats a failed test contains its exact name, quoted for the shell', () => {
  const name = "it's [odd] > fails + more (5)";
  expect(commandFor({ file: 'model/key.test.ts', name })).toBe(
    String.raw`npm test -- model/key.test.ts -t '^it'\''s \[odd\] > fails \+ more \(5\)$'`,
  );
});

test('a setting in the name of a test becomes part of the command', () => {
  const name = 'with BERTH_TEST_FUZZ_SEED=5 > others stay';
  expect(commandFor({ file: 'a.test.ts', name })).toBe(
    "BERTH_TEST_FUZZ_SEED=5 npm test -- a.test.ts -t '^with BERTH_TEST_FUZZ_SEED=5 > others stay$'",
  );
});
