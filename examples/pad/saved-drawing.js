/** The drawing on disk: one file a key, so that the next backend with the key goes on where the last one ended. */
import { createHash } from 'node:crypto';
import { access, constants, mkdir, open, readFile, rename } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** Where Berth mounts a folder that outlives the container, when `mount` was asked for. */
const mountedFolder = '/data';

/** The folder to save in: the one given, the mounted one, or one that ends with the container. */
export async function chooseFolder(given) {
  if (given) return given;
  const mounted = await access(mountedFolder, constants.W_OK).then(
    () => true,
    () => false,
  );
  return mounted ? mountedFolder : join(tmpdir(), 'pad');
}

/** Whether what is in this folder outlives the container. */
export function lasts(folder) {
  return !folder.startsWith(tmpdir());
}

/** Reads the drawing that was saved under a key. A file that cannot be understood is put aside, not overwritten. */
export async function load(folder, key) {
  const path = fileOf(folder, key);
  let text;
  try {
    text = await readFile(path, 'utf8');
  } catch (error) {
    if (error.code === 'ENOENT') return undefined;
    throw error;
  }
  try {
    return JSON.parse(text);
  } catch {
    await rename(path, `${path}.broken`);
    return undefined;
  }
}

/**
 * Saves a drawing, so that at any moment either the old file is there or the new one: temporary file, fsync, rename, fsync
 * of the folder. A file written under a higher fencing token stays: then the key has been given to a younger backend, and
 * this one has nothing more to say.
 */
export async function save(folder, saved) {
  const path = fileOf(folder, saved.key);
  const present = await load(folder, saved.key);
  if ((present?.fencingToken ?? 0) > (saved.fencingToken ?? 0)) return false;
  await mkdir(folder, { recursive: true });
  const draft = `${path}.${process.pid}.draft`;
  await writeAndSync(draft, JSON.stringify(saved));
  await rename(draft, path);
  const directory = await open(folder, 'r');
  await directory.sync();
  await directory.close();
  return true;
}

async function writeAndSync(path, text) {
  const file = await open(path, 'w');
  try {
    await file.writeFile(text);
    await file.sync();
  } finally {
    await file.close();
  }
}

/** Keys may hold any character, file names may not. */
function fileOf(folder, key) {
  const name = createHash('sha256')
    .update(key ?? '')
    .digest('hex')
    .slice(0, 32);
  return join(folder, `pad-${name}.json`);
}
