/** Memory of the whole platform when nothing happens, against a Node process that does nothing at all. */
import { spawn } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { setTimeout as delay } from 'node:timers/promises';
import type { TestPlatform } from '../test/kit/platform/platform.ts';
import { sizeRow } from './figures.ts';
import type { Row } from './figures.ts';

/** What start-up left behind is collected by then. */
const settleMs = 5_000;

/** Restarts the platform, so that what is measured is an idle one, and measures both. Linux only. */
export async function idleMemory(platform: TestPlatform): Promise<Row> {
  await platform.stop();
  await platform.restart();
  const bare = spawn(process.execPath, ['--eval', 'setInterval(() => {}, 1000)'], { stdio: 'ignore' });
  try {
    await delay(settleMs);
    const resident = { ours: await residentBytes(platform.pid), peer: await residentBytes(bare.pid) };
    return sizeRow('resident memory of the idle platform / of an idle Node', resident, '≤ 150 MB');
  } finally {
    bare.kill();
  }
}

async function residentBytes(pid: number | undefined): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8');
  return Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1]) * 1024;
}
