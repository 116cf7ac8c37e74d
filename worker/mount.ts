import { createHash } from 'node:crypto';
import { chmod, mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { Backend } from '../model/backend.ts';

/**
 * The name of the folder that a backend sees as `/data`: a hash, so that no key and no path leaves the folder of mounts.
 * `true` is a folder of the key's own (of the backend's own where it has no key); a text is shared within the service.
 */
export function mountName(backend: Pick<Backend, 'id' | 'account' | 'service' | 'key' | 'mount'>): string {
  const { account, service, mount } = backend;
  const name = mount === true ? ownName(backend) : ['path', mount];
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

function ownName(backend: Pick<Backend, 'id' | 'key'>): string[] {
  return backend.key === undefined ? ['backend', backend.id] : ['key', backend.key];
}
