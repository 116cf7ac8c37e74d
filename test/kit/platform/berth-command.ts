import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { TestPlatform } from './platform.ts';

const run = promisify(execFile);
const entry = join(import.meta.dirname, '../../../main/berth.ts');

interface Outcome {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
  /** The lines that it printed, parsed as JSON. */
  readonly lines: Readonly<Record<string, unknown>>[];
}

/** Runs a command of `berth` on a platform's data, with `--json`. */
export async function runBerth(platform: Pick<TestPlatform, 'environment'>, ...args: string[]): Promise<Outcome> {
  const done = await runPlainBerth(platform, ...args, '--json');
  const lines = done.stdout.split('\n').filter(Boolean);
  return { ...done, lines: lines.map((line) => JSON.parse(line) as Record<string, unknown>) };
}

/** The number of stored blobs, which `berth verify` counts. */
export async function storedBlobs(platform: Pick<TestPlatform, 'environment'>): Promise<number> {
  const { lines } = await runBerth(platform, 'verify');
  return Number(lines.at(-1)?.['blobs']);
}

/** Runs a command of `berth` on a platform's data, without `--json`. */
export async function runPlainBerth(
  platform: Pick<TestPlatform, 'environment'>,
  ...args: string[]
): Promise<Omit<Outcome, 'lines'>> {
  return await run(process.execPath, [entry, ...args], { env: platform.environment }).then(
    (done) => ({ ...done, code: 0 }),
    (error: { stdout: string; stderr: string; code: number }) => error,
  );
}
