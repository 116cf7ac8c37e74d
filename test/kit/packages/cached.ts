/** A cache of folders that take long to build, kept for later runs. */
import { access, mkdir, mkdtemp, rename, rm } from 'node:fs/promises';
import { homedir } from 'node:os';
import { dirname, join } from 'node:path';

/** Returns the folder with this name, and builds it first if it is missing. It appears atomically, also with concurrent builders. */
export async function cached(name: string, make: (folder: string) => Promise<void>): Promise<string> {
  const target = cachedPath(name);
  if (await pathExists(target)) return target;
  await mkdir(dirname(target), { recursive: true });
  const making = await mkdtemp(join(dirname(target), 'making-'));
  try {
    await make(making);
    await rename(making, target);
  } catch (error) {
    if (!(await pathExists(target))) throw error;
  } finally {
    await rm(making, { recursive: true, force: true });
  }
  return target;
}

/** The path of a cached folder. */
export function cachedPath(name: string): string {
  const base = process.env['XDG_CACHE_HOME'] || join(homedir(), '.cache');
  return join(base, 'berth-tests', name);
}

/** Whether a path exists. */
export async function pathExists(path: string): Promise<boolean> {
  return await access(path).then(
    () => true,
    () => false,
  );
}
