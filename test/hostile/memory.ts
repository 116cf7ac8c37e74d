import { readFile } from 'node:fs/promises';
import type { HostileStage } from './stage.ts';

/** What the registry's process has in memory, where the system tells. */
export async function residentMiB(stage: HostileStage): Promise<number> {
  const status = await readFile(`/proc/${stage.platform.registryPid}/status`, 'utf8').catch(() => '');
  return Number(/^VmRSS:\s+([0-9]+) kB/m.exec(status)?.[1] ?? 0) / 1024;
}
