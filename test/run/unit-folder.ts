/** The folder of temporary files of the units, also when vitest runs without `npm test`: in memory, and removed at the end. */
import { openScratchFolder } from './scratch-folder.ts';
import type { ScratchFolder } from './scratch-folder.ts';

let folder: ScratchFolder;

export async function setup(): Promise<void> {
  folder = await openScratchFolder();
}

export async function teardown(): Promise<void> {
  await folder[Symbol.asyncDispose]();
}
