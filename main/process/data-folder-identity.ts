/** Determines the location of a data folder, which labels containers and networks, and whether a process still uses the folder. */
import { once } from 'node:events';
import { readFile, realpath } from 'node:fs/promises';
import { connect, createServer } from 'node:net';
import { join, relative } from 'node:path';
import type { DataFolderIdentity } from '../../worker/index.ts';
import type { ComponentDeps } from '../drivers.ts';

/** Identifies the data folder. Returns `undefined` if its location cannot be determined; then leftovers are never removed. */
export async function dataFolderIdentity({
  dataFolder,
  dataFolderId,
}: Pick<ComponentDeps, 'dataFolder' | 'dataFolderId'>): Promise<DataFolderIdentity | undefined> {
  const mounts = await readFile('/proc/self/mountinfo', 'utf8').catch(() => '');
  const location = locationOnDisk(await realpath(dataFolder), mounts);
  return location === undefined ? undefined : { location, id: dataFolderId, isAlive: isPresent };
}

/**
 * The device of a folder and its path on that device, which identify the folder even if a container sees it under another path.
 * Only for folders on disks, because folders in memory or in a container disappear with their process. See proc_pid_mountinfo(5).
 */
export function locationOnDisk(path: string, mountinfo: string): string | undefined {
  let location: string | undefined;
  let longest = 0;
  for (const line of mountinfo.split('\n')) {
    const [mount = '', system = ''] = line.split(' - ');
    const [, , , root, point] = mount.split(' ').map(unescaped);
    const [, source = ''] = system.split(' ').map(unescaped);
    if (root === undefined || point === undefined || !isBelow(path, point) || point.length < longest) continue;
    // If several file systems are mounted at one point, the last one covers the others.
    longest = point.length;
    location = source.startsWith('/dev/') ? `${source}:${join(root, relative(point, path))}` : undefined;
  }
  return location;
}

function isBelow(path: string, point: string): boolean {
  return point === '/' || path === point || path.startsWith(`${point}/`);
}

/** mountinfo writes spaces and some other characters as octal numbers. */
function unescaped(text: string): string {
  return text.replaceAll(/\\([0-7]{3})/g, (_all, octal: string) => String.fromCharCode(Number.parseInt(octal, 8)));
}

/**
 * Shows other processes of this machine that a platform is running, even if its data folder was moved in the meantime. Opens an
 * abstract socket, which has a name but no file, so the kernel removes it when the process ends.
 */
export async function showPresence(id: string): Promise<AsyncDisposable> {
  const server = createServer((socket) => socket.destroy());
  server.unref();
  server.listen(socketOf(id));
  // Listening fails if another process with the same data folder has the socket, or if the system has no abstract sockets.
  const shown = await once(server, 'listening').then(
    () => true,
    () => false,
  );
  return {
    [Symbol.asyncDispose]: async () => {
      if (shown) await new Promise<void>((resolve) => server.close(() => resolve()));
    },
  };
}

async function isPresent(id: string): Promise<boolean> {
  const socket = connect(socketOf(id));
  const answers = await once(socket, 'connect').then(
    () => true,
    () => false,
  );
  socket.destroy();
  return answers;
}

function socketOf(id: string): string {
  return `\0berth-data-folder-${id}`;
}
