import { execFile, spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { temporaryFolder } from '../kit/machine/temporary-folder.ts';

/** No file may become larger; the store's files and an upload reach this soon. */
const largestFileBytes = 2_000_000;

const hasPrlimit = spawnSync('prlimit', ['--version']).status === 0;

interface Report {
  readonly acknowledged: boolean[];
  readonly refusals: string[];
  readonly foundAfterwards: boolean[];
  readonly appended: string;
  readonly keptBytes: number;
  readonly later: number;
}

test.runIf(hasPrlimit)(
  'where no more can be written, that is said, nothing is half there, and it goes on later',
  async () => {
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
    expect(report.refusals.length).toBeGreaterThan(0);
    expect(new Set(report.refusals)).toStrictEqual(new Set(['unavailable']));
    expect(report.appended).toBe('no-space');
    expect(report.keptBytes).toBe(largestFileBytes);
    expect(report.later).toBe(1);
  },
);
