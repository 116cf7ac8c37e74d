import { execFile, spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { temporaryFolder } from '../kit/machine/temporary-folder.ts';

/** The limit for each file, which the store's files and an upload reach soon. */
const largestFileBytes = 2_000_000;

const hasPrlimit = spawnSync('prlimit', ['--version']).status === 0;

interface Report {
  readonly acknowledged: boolean[];
  readonly errorCodes: string[];
  readonly foundAfterwards: boolean[];
  readonly appended: string;
  readonly keptBytes: number;
  readonly later: number;
}

test.runIf(hasPrlimit)('failed writes are reported, no write is torn, and writes succeed again later', async () => {
  await using folder = await temporaryFolder();
  const script = fileURLToPath(new URL('full-disk-child.ts', import.meta.url));
  const { stdout } = await promisify(execFile)('prlimit', [
    `--fsize=${largestFileBytes}:`,
    process.execPath,
    script,
    folder.path,
  ]);
  const report = JSON.parse(stdout) as Report;
  expect(report.foundAfterwards).toStrictEqual(report.acknowledged);
  expect(report.acknowledged).toContain(true);
  expect(report.errorCodes.length).toBeGreaterThan(0);
  expect(new Set(report.errorCodes)).toStrictEqual(new Set(['unavailable']));
  expect(report.appended).toBe('no-space');
  expect(report.keptBytes).toBe(largestFileBytes);
  expect(report.later).toBe(1);
});
