import { createHash } from 'node:crypto';
import { chmod, mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { Backend } from '../../model/backend.ts';
import { ownMounts } from './own-mounts.ts';

/**
 * Where in the folder of mounts the folder is that a backend sees as `/data`. `true` is a folder of the key's own, or of the
 * backend's own where it has no key; a text is shared within the service. Keys and paths are hashed, so that none leaves the
 * folder of mounts.
 */
export function mountName(backend: Pick<Backend, 'id' | 'account' | 'service' | 'key' | 'mount'>): string {
  const { id, account, service, key, mount } = backend;
  if (mount === true && key === undefined) return join(ownMounts, id);
  const name = mount === true ? ['key', key] : ['path', mount];
  return createHash('sha256')
    .update(JSON.stringify([account, service, ...name]))
    .digest('hex');
}

/** Makes the folder of a backend's mount if it is not there, and returns where it is. */
export async function openMount(mountFolder: string, backend: Backend): Promise<string> {
  // Only the engine and this process look in here; what containers see is each one's own folder.
  await mkdir(mountFolder, { recursive: true, mode: 0o700 });
  const folder = join(mountFolder, mountName(backend));
  await mkdir(folder, { recursive: true });
  // An image may run as any user, and which one is not known here.
  await chmod(folder, 0o777);
  return folder;
}
