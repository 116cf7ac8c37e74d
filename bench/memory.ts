/** Memory of the idle platform, compared with an idle Node process; and peak memory of a registry during pushes. Linux only. */
import { spawn } from 'node:child_process';
import { readFile, writeFile } from 'node:fs/promises';
import { setTimeout as delay } from 'node:timers/promises';
import type { TestPlatform } from '../test/kit/platform/platform.ts';
import { sizeRow } from './measurements.ts';
import type { Row } from './measurements.ts';
import { Pusher, atATime, newBlobs } from './registry-load.ts';
import type { Repository } from './registry-load.ts';

/** So many blobs of this size are pushed at once. */
const pushes = 20;
const sizeBytes = 100 * 1024 * 1024;

/** Long enough for the garbage collector to free the memory of the start. */
const settleMs = 25_000;

/** Restarts the platform, so that it is idle, and measures both. */
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

/** The peak memory of a registry's process during the pushes. */
export async function peakBytesOfPushes(repository: Repository, pid: number): Promise<number> {
  // Resets the peak that the kernel records (man 5 proc, clear_refs).
  await writeFile(`/proc/${pid}/clear_refs`, '5');
  using pusher = new Pusher(repository);
  const blobs = newBlobs(pushes, sizeBytes);
  await atATime(pushes, blobs, async (blob) => await pusher.blob(blob));
  const status = await readFile(`/proc/${pid}/status`, 'utf8');
  return Number(/^VmHWM:\s+(\d+) kB$/m.exec(status)?.[1]) * 1024;
}

/** The resident memory of a process. */
export async function residentBytes(pid: number | undefined): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8');
  return Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1]) * 1024;
}
