/** The data folder of a development server, which is deleted when the server stops. */
import { mkdir, rm } from 'node:fs/promises';
import { homedir } from 'node:os';
import { join } from 'node:path';
import type { Environment } from './docker.ts';

/**
 * Creates an empty folder for the server on a port, and deletes the files of a killed server there; its containers are labelled with
 * the path. The folder is below the user's caches, because the system's temporary folder may be in memory and open to other users.
 */
export async function temporaryFolder(
  environment: Environment,
  port: number,
): Promise<AsyncDisposable & { readonly path: string }> {
  const caches = environment['XDG_CACHE_HOME'] || join(environment['HOME'] || homedir(), '.cache');
  const path = join(caches, 'berth', `dev-${port}`);
  const remove = async () => await rm(path, { recursive: true, force: true, maxRetries: 3 });
  await remove();
  await mkdir(path, { recursive: true, mode: 0o700 });
  return { path, [Symbol.asyncDispose]: remove };
}
