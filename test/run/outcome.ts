/** The end of a run of tests: what was slowest, how to run again what failed, and the counts as plain text. */
import { relative } from 'node:path';
import { requiredVariable, unmet } from '../kit/required.ts';
import type { Missing, Required } from '../kit/required.ts';
import { root } from './vitest.ts';
import type { FileResult } from './vitest.ts';

const slowestCount = 10;

export interface Outcome {
  /** Of each file, as it went the last time. */
  readonly results: readonly FileResult[];
  /** Of vitest. */
  readonly code: number;
  readonly required: Required;
  readonly missing: readonly Missing[];
}

/** Prints it. A run fails if vitest says so, if a test failed, if there was none, and if what is required was skipped. */
export function conclude({ results, code, required, missing }: Outcome): number {
  if (results.length === 0) {
    process.stderr.write('The tests ended without a report\n');
    return code || 1;
  }
  const failed = testsWith(results, 'failed');
  // A file that cannot be loaded, or made ready, has no test that failed: those that it has count as skipped.
  const broken = results.filter(
    ({ status, assertionResults }) =>
      status === 'failed' && assertionResults.every((assertion) => assertion.status !== 'failed'),
  );
  const passedCount = testsWith(results, 'passed').length;
  const failedCount = failed.length + broken.length;
  const skipped = testsWith(results, 'skipped', 'pending', 'todo', 'disabled');
  const names = skipped.map(({ file, name }) => `${file}: ${name}`);
  const lacking = unmet(required, missing, names);

  process.stdout.write(['The slowest files:', ...slowest(results), ''].join('\n'));
  const again = [...failed.map(commandFor), ...broken.map(({ name }) => `npm test ${pathOf(name)}`)];
  if (again.length > 0)
    process.stdout.write(['To run again what failed:', ...again.map((line) => `  ${line}`), ''].join('\n'));
  for (const line of lacking) process.stderr.write(`Required by ${requiredVariable}, and skipped: ${line}\n`);
  process.stdout.write(`${passedCount} passed, ${failedCount} failed, ${skipped.length} skipped\n`);
  return code || (failedCount > 0 || passedCount === 0 || lacking.length > 0 ? 1 : 0);
}

interface TestName {
  readonly file: string;
  /** The names of its groups, and its own, as vitest joins them to match `-t`. */
  readonly name: string;
}

/** The command that runs just one test again. */
export function commandFor({ file, name }: TestName): string {
  // A setting that decides what a test does is part of its name, such as the seed of the fuzzer.
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
