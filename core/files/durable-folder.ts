import { mkdir, open } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';

/** What the platform stores is nobody else's business. */
const ownerOnly = 0o700;

/** Makes a folder, and those above it, so that they are still there after a power cut. */
export async function makeDurableFolder(folder: string): Promise<void> {
  const path = resolve(folder);
  const highestMade = await mkdir(path, { recursive: true, mode: ownerOnly });
  // The folder above is synced in any case: whoever made this one may have died before it came to that.
  const last = dirname(resolve(highestMade ?? path));
  for (let above = dirname(path); ; above = dirname(above)) {
    await syncFolder(above);
    if (above === last || above === dirname(above)) return;
  }
}

/** Makes what was created, renamed or removed in a folder durable. */
export async function syncFolder(folder: string): Promise<void> {
  await using handle = await open(folder, 'r');
  await handle.sync();
}
