/**
 * The folders that backends see as `/data`. A folder that belongs to one backend alone is removed after its container, and stands
 * apart, so that a search for leftovers reads only a few entries:
 *
 *     <mount folder>/<hash>                  shared by the backends of a key, or of a path within a service
 *     <mount folder>/backends/<backend>      of one backend
 */
import { createHash } from 'node:crypto';
import { chmod, mkdir, readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { ifPresent } from '../../core/files/system-code.ts';
import { backends } from '../../model/backend.ts';
import type { Backend } from '../../model/backend.ts';
import type { WorkerContext } from '../context.ts';

const ownMounts = 'backends';

/**
 * The path of a backend's mount within the mount folder. `true` is a folder of the key, or of the backend if it has no key; a text
 * is shared within the service. Keys and paths are hashed, so that no name leads out of the mount folder.
 */
export function mountName(backend: Pick<Backend, 'id' | 'account' | 'service' | 'key' | 'mount'>): string {
  const { id, account, service, key, mount } = backend;
  if (mount === true && key === undefined) return join(ownMounts, id);
  const name = mount === true ? ['key', key] : ['path', mount];
  return createHash('sha256')
    .update(JSON.stringify([account, service, ...name]))
    .digest('hex');
}

/** Creates the folder of a backend's mount if it does not exist, and returns its path. */
export async function openMount(mountFolder: string, backend: Backend): Promise<string> {
  // Only the engine and this process read this folder; each container sees only its own folder in it.
  await mkdir(mountFolder, { recursive: true, mode: 0o700 });
  const folder = join(mountFolder, mountName(backend));
  await mkdir(folder, { recursive: true });
  // The image may run as any user, which is unknown here.
  await chmod(folder, 0o777);
  return folder;
}

/** Removes the folder that belongs to one backend alone, if there is one. Its container must have been removed. */
export async function removeOwnMount({ settings, log }: WorkerContext, backend: string): Promise<void> {
  if (settings.mountFolder === undefined) return;
  try {
    await rm(join(settings.mountFolder, ownMounts, backend), { recursive: true, force: true });
  } catch (error) {
    log.warn({ err: error, backend }, 'Cannot remove the folder of a mount, the next start of this worker tries again');
  }
}

/** Removes the folders that an earlier worker of this node left, because its machine stopped between container and folder. */
export async function removeLeftOverMounts(worker: WorkerContext): Promise<void> {
  const { settings, store, engine } = worker;
  if (settings.mountFolder === undefined) return;
  const found = (await ifPresent(readdir(join(settings.mountFolder, ownMounts)))) ?? [];
  const left = found.filter((id) => !worker.runs.has(id) && !worker.claiming.has(id));
  if (left.length === 0) return;
  const containers = new Set((await engine.containers.list()).map(({ backend }) => backend));
  for (const id of left) {
    if (containers.has(id)) continue;
    const backend = await store.get(backends, id);
    // Nodes may share the mount folder: each removes only the folders of backends that ended on it.
    if (!backend || (!backend.live && backend.node === settings.node)) await removeOwnMount(worker, id);
  }
}
