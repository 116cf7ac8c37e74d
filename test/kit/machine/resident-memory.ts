import { readFile } from 'node:fs/promises';

/** The resident memory of a process. 0 on systems without /proc. */
export async function residentBytes(pid: number | undefined): Promise<number> {
  if (process.platform !== 'linux') return 0;
  const status = await readFile(`/proc/${pid}/status`, 'utf8');
  return Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1]) * 1024;
}
