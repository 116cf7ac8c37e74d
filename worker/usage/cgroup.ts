/** Reads a container's usage from the kernel: takes 0.05 ms, where a request to the engine takes a second on 20.10. */
import { readFile } from 'node:fs/promises';

export interface Usage {
  /** Without the page cache that the kernel can reclaim at once. */
  readonly memoryBytes: number;
  readonly cpuNanoseconds: number;
}

/** The folders of a container's control group, in version 1 or 2. */
export type CgroupFolders =
  | { readonly version: 1; readonly memory: string; readonly cpu: string }
  | { readonly version: 2; readonly folder: string };

const root = '/sys/fs/cgroup';

/**
 * Finds the control group of a container by its process ID. Returns `undefined` if it is not visible: in another PID namespace the
 * same ID is another process.
 */
export async function findCgroup(pid: number, container: string): Promise<CgroupFolders | undefined> {
  const text = await readFile(`/proc/${pid}/cgroup`, 'utf8').catch(() => '');
  return text.includes(container) ? parseCgroup(text) : undefined;
}

/** Parses the text of `/proc/<pid>/cgroup`. */
export function parseCgroup(text: string): CgroupFolders | undefined {
  const pathOf = new Map<string, string>();
  for (const line of text.split('\n')) {
    const [, controllers, path] = /^\d+:([^:]*):(.*)$/.exec(line) ?? [];
    for (const controller of controllers?.split(',') ?? []) pathOf.set(controller, path ?? '');
  }
  const memory = pathOf.get('memory');
  const cpu = pathOf.get('cpuacct');
  if (memory !== undefined && cpu !== undefined) {
    return { version: 1, memory: `${root}/memory${memory}`, cpu: `${root}/cpuacct${cpu}` };
  }
  const unified = pathOf.get('');
  return unified === undefined ? undefined : { version: 2, folder: `${root}${unified}` };
}

/** Reads the usage of a control group. Returns `undefined` if that fails, most likely because the container has exited. */
export async function readUsage(cgroup: CgroupFolders): Promise<Usage | undefined> {
  try {
    return cgroup.version === 1 ? await readVersion1(cgroup) : await readVersion2(cgroup.folder);
  } catch {
    return undefined;
  }
}

async function readVersion1({ memory, cpu }: { memory: string; cpu: string }): Promise<Usage> {
  const [usage, stat, cpuUsage] = await Promise.all([
    readFile(`${memory}/memory.usage_in_bytes`, 'utf8'),
    readFile(`${memory}/memory.stat`, 'utf8'),
    readFile(`${cpu}/cpuacct.usage`, 'utf8'),
  ]);
  return {
    memoryBytes: Math.max(Number(usage) - numberIn(stat, 'total_inactive_file'), 0),
    cpuNanoseconds: Number(cpuUsage),
  };
}

async function readVersion2(folder: string): Promise<Usage> {
  const [current, stat, cpuStat] = await Promise.all([
    readFile(`${folder}/memory.current`, 'utf8'),
    readFile(`${folder}/memory.stat`, 'utf8'),
    readFile(`${folder}/cpu.stat`, 'utf8'),
  ]);
  return {
    memoryBytes: Math.max(Number(current) - numberIn(stat, 'inactive_file'), 0),
    cpuNanoseconds: numberIn(cpuStat, 'usage_usec') * 1000,
  };
}

/** The number after a name, in lines of `name number`. */
function numberIn(text: string, name: string): number {
  return Number(new RegExp(`^${name} (\\d+)$`, 'm').exec(text)?.[1] ?? 0);
}
