/** The drawing on disk, in a file for each key, from which the next backend with the key continues. */
import { createHash } from 'node:crypto';
import { access, constants, mkdir, open, readFile, rename } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** Where Berth mounts a folder that is kept after the container ends, if the connect request sets `mount`. */
const mountedFolder = '/data';

/** The folder for drawings: `PAD_FOLDER`, the mounted folder, or a folder that is deleted with the container. */
export async function chooseFolder(given) {
  if (given) return given;
  const mounted = await access(mountedFolder, constants.W_OK).then(
    () => true,
    () => false,
  );
  return mounted ? mountedFolder : join(tmpdir(), 'pad');
}

/** Whether the folder is kept after the container ends. */
export function isPersistent(folder) {
  return !folder.startsWith(tmpdir());
}

/** Reads the saved drawing of a key. An invalid file is renamed, not overwritten. */
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
 * Saves a drawing atomically: temporary file, fsync, rename, fsync of the folder. Does not overwrite a file with a higher fencing
 * token, because the key was then assigned to a newer backend.
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

/** Keys can contain any character, but file names cannot. */
function fileOf(folder, key) {
  const name = createHash('sha256')
    .update(key ?? '')
    .digest('hex')
    .slice(0, 32);
  return join(folder, `pad-${name}.json`);
}
