/**
 * Folders of mounts that belong to one backend alone, and are removed after its container:
 *
 *     <folder of mounts>/backends/<backend>
 */
import { readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { ifPresent } from '../../core/files/system-code.ts';
import { backends } from '../../model/backend.ts';
import type { WorkerContext } from '../context.ts';

/** The part of the folder of mounts that holds them, so that to look for what is left over is to look at few. */
export const ownMounts = 'backends';

/** Removes the folder of a backend whose container is gone, if it had one of its own. */
export async function removeOwnMount({ settings, log }: WorkerContext, backend: string): Promise<void> {
  if (settings.mountFolder === undefined) return;
  try {
    await rm(join(settings.mountFolder, ownMounts, backend), { recursive: true, force: true });
  } catch (error) {
    log.warn({ err: error, backend }, 'Folder of a mount cannot be removed, the next start of this worker tries again');
  }
}

/** Removes what an earlier worker of this node left: its machine may have stopped between container and folder. */
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
    // Nodes may share the folder: what ended on another node, that one removes.
    if (!backend || (!backend.live && backend.node === settings.node)) await removeOwnMount(worker, id);
  }
}
