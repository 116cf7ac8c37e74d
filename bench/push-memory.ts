/** How much memory a registry takes at most while twenty pushes of 100 MiB run. Linux only. */
import { readFile, writeFile } from 'node:fs/promises';
import { Pusher, atATime, newBlobs } from './registry-load.ts';
import type { Repository } from './registry-load.ts';

const pushes = 20;
const sizeBytes = 100 * 1024 * 1024;

export async function peakBytesOfPushes(repository: Repository, pid: number): Promise<number> {
  // From here on the kernel notes a new peak (man 5 proc, clear_refs).
  await writeFile(`/proc/${pid}/clear_refs`, '5');
  using pusher = new Pusher(repository);
  const blobs = newBlobs(pushes, sizeBytes);
  await atATime(pushes, blobs, async (blob) => await pusher.blob(blob));
  const status = await readFile(`/proc/${pid}/status`, 'utf8');
  return Number(/^VmHWM:\s+(\d+) kB$/m.exec(status)?.[1]) * 1024;
}
