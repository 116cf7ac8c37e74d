import { readFile } from 'node:fs/promises';

/** What a process has in memory, where the system tells. */
export async function residentMiB(pid: number | undefined): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8').catch(() => '');
  return Number(/^VmRSS:\s+([0-9]+) kB/m.exec(status)?.[1] ?? 0) / 1024;
}
