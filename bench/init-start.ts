/** The time that the init for keys adds to the start of a container, compared with Docker's init. */
import { spawnSync } from 'node:child_process';
import { chmod, copyFile, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir, uptime } from 'node:os';
import { join } from 'node:path';
import { leaseMs } from '../model/key.ts';
import { findProgram } from '../setup/command.ts';
import { inTurn, median, pairsRow } from './measurements.ts';
import type { Row } from './measurements.ts';

const rounds = 20;

/** Several, because a single start is too short to time. */
const startsPerRound = 50;

/** Measures both with a program that does nothing. */
export async function initStart(): Promise<Row> {
  const dockerInit = await findProgram('docker-init');
  if (dockerInit === undefined) throw new Error('Install docker-init: this measurement compares with it');
  const folder = await mkdtemp(join(tmpdir(), 'berth-init-'));
  try {
    const init = join(folder, 'init');
    const build = process.arch === 'arm64' ? 'init-arm64' : 'init-amd64';
    await copyFile(join(import.meta.dirname, '../worker/init', build), init);
    await chmod(init, 0o755);
    const endsAtMs = Math.floor(uptime() * 1000) + leaseMs;
    await writeFile(join(folder, 'lease'), `${endsAtMs} ${endsAtMs} 15\n`);
    const pairs = await inTurn(
      { warmUps: 1, rounds },
      async () => startMs(init, ['true']),
      // docker-init reaps orphans as process 1 of a container; elsewhere only with `-s`.
      async () => startMs(dockerInit, ['-s', '--', 'true']),
    );
    const show = (times: readonly number[]) => `${median(times).toFixed(2)} ms`;
    return pairsRow("start of a program under the init for keys / under Docker's init", pairs, {
      show,
      aim: '≤ + 2 ms',
    });
  } finally {
    await rm(folder, { recursive: true });
  }
}

function startMs(program: string, args: readonly string[]): number {
  const beganAt = performance.now();
  for (let starts = 0; starts < startsPerRound; starts += 1) {
    const { status } = spawnSync(program, args);
    if (status !== 0) throw new Error(`${program} ended with ${status}`);
  }
  return (performance.now() - beganAt) / startsPerRound;
}
