/** The report of a test run: the slowest files, commands that repeat the failed tests, and the counts as plain text. */
import { relative } from 'node:path';
import { requiredVariable, unmet } from '../kit/required.ts';
import type { Missing, Required } from '../kit/required.ts';
import { root } from './vitest.ts';
import type { FileResult } from './vitest.ts';

const slowestCount = 10;

export interface Outcome {
  /** The last result of each file. */
  readonly results: readonly FileResult[];
  /** The exit code of vitest. */
  readonly code: number;
  readonly required: Required;
  readonly missing: readonly Missing[];
}

/**
 * Prints the outcome, and returns the exit code. A run fails if vitest or a test failed, no test ran, or a required test was
 * skipped.
 */
export function reportOutcome({ results, code, required, missing }: Outcome): number {
  if (results.length === 0) {
    process.stderr.write('The tests ended without a report\n');
    return code || 1;
  }
  const failed = testsWith(results, 'failed');
  // A file that cannot be loaded, or whose hooks fail, has no failed tests: vitest counts its tests as skipped.
  const broken = results.filter(
    ({ status, assertionResults }) =>
      status === 'failed' && assertionResults.every((assertion) => assertion.status !== 'failed'),
  );
  const passedCount = testsWith(results, 'passed').length;
  const failedCount = failed.length + broken.length;
  const skipped = testsWith(results, 'skipped', 'pending', 'todo', 'disabled');
  const names = skipped.map(({ file, name }) => `${file}: ${name}`);
  const unmetRequirements = unmet(required, missing, names);

  process.stdout.write(['The slowest files:', ...slowest(results), ''].join('\n'));
  const repeats = [...failed.map(commandFor), ...broken.map(({ name }) => `npm test ${pathOf(name)}`)];
  if (repeats.length > 0)
    process.stdout.write(['To repeat what failed:', ...repeats.map((line) => `  ${line}`), ''].join('\n'));
  for (const line of unmetRequirements) process.stderr.write(`Required by ${requiredVariable}, and skipped: ${line}\n`);
  process.stdout.write(`${passedCount} passed, ${failedCount} failed, ${skipped.length} skipped\n`);
  return code || (failedCount > 0 || passedCount === 0 || unmetRequirements.length > 0 ? 1 : 0);
}

interface TestName {
  readonly file: string;
  /** The names of its groups and of the test, joined as vitest matches `-t`. */
  readonly name: string;
}

/** The command that repeats a single test. */
export function commandFor({ file, name }: TestName): string {
  // A setting that a test depends on is part of its name, such as the seed of the fuzzer.
  const settings = name.match(/\bBERTH_TEST_\w+=\w+/g) ?? [];
  const pattern = name.replaceAll(/[.*+?^${}()|[\]\\]/g, String.raw`\$&`).replaceAll("'", String.raw`'\''`);
  return [...settings, 'npm test --', file, '-t', `'^${pattern}$'`].join(' ');
}

function testsWith(results: readonly FileResult[], ...statuses: string[]): TestName[] {
  return results.flatMap(({ name: file, assertionResults }) =>
    assertionResults
      .filter(({ status }) => statuses.includes(status))
      .map(({ ancestorTitles, title }) => ({ file: pathOf(file), name: [...ancestorTitles, title].join(' > ') })),
  );
}

function slowest(results: readonly FileResult[]): string[] {
  const timed = results.map(({ name, startTime, endTime }) => ({ name, seconds: (endTime - startTime) / 1_000 }));
  return timed
    .toSorted((one, other) => other.seconds - one.seconds)
    .slice(0, slowestCount)
    .map(({ name, seconds }) => `${Math.round(seconds).toString().padStart(5)} s  ${pathOf(name)}`);
}

function pathOf(file: string): string {
  return relative(root, file);
}
