import { statfs } from 'node:fs/promises';

/** TMPFS_MAGIC and RAMFS_MAGIC of linux/magic.h. */
const memoryTypes = [0x01021994, 0x858458f6];

/** Whether a folder stands in memory: what is kept there takes from what the process may use. */
export async function isInMemory(folder: string): Promise<boolean> {
  return memoryTypes.includes((await statfs(folder)).type);
}
