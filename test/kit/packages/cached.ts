/** Things that take long to make and stay for the next run. */
import { access, mkdir, mkdtemp, rename, rm } from 'node:fs/promises';
import { homedir } from 'node:os';
import { dirname, join } from 'node:path';

/** A folder that is named by what it is made of. It appears whole, whoever else makes it at the same time. */
export async function cached(name: string, make: (folder: string) => Promise<void>): Promise<string> {
  const target = cachedPath(name);
  if (await isThere(target)) return target;
  await mkdir(dirname(target), { recursive: true });
  const making = await mkdtemp(join(dirname(target), 'making-'));
  try {
    await make(making);
    await rename(making, target);
  } catch (error) {
    if (!(await isThere(target))) throw error;
  } finally {
    await rm(making, { recursive: true, force: true });
  }
  return target;
}

/** Where a cached folder is, once it is made. */
export function cachedPath(name: string): string {
  const base = process.env['XDG_CACHE_HOME'] || join(homedir(), '.cache');
  return join(base, 'berth-tests', name);
}

export async function isThere(path: string): Promise<boolean> {
  return await access(path).then(
    () => true,
    () => false,
  );
}
