/** The data folder of a development server, which exists as long as the server. */
import { mkdir, rm } from 'node:fs/promises';
import { homedir } from 'node:os';
import { join } from 'node:path';
import type { Environment } from './docker.ts';

/**
 * Creates an empty folder for the server on a port. It is below the caches of the user, because a temporary folder may be in memory,
 * and other users may write there. What a killed server has left there is removed; its containers are then found by the path.
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
