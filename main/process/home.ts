/** Where a data folder is, as containers and networks bear it, and whether a process still has it. */
import { once } from 'node:events';
import { readFile, realpath } from 'node:fs/promises';
import { connect, createServer } from 'node:net';
import { join, relative } from 'node:path';
import type { Home } from '../../worker/index.ts';
import type { ComponentDeps } from '../drivers.ts';

/** The home of a platform. There is none where the folder's place cannot be known for sure: then nothing is ever removed. */
export async function homeOf({
  dataFolder,
  dataFolderId,
}: Pick<ComponentDeps, 'dataFolder' | 'dataFolderId'>): Promise<Home | undefined> {
  const mounts = await readFile('/proc/self/mountinfo', 'utf8').catch(() => '');
  const place = placeOnDisk(await realpath(dataFolder), mounts);
  return place === undefined ? undefined : { place, id: dataFolderId, isAlive: isPresent };
}

/**
 * A folder's device, and its path on that: no other folder has the same at a time, whatever it is called in a container. Only of
 * disks, since what is kept in memory, or in a container, is gone with its process. See proc_pid_mountinfo(5).
 */
export function placeOnDisk(path: string, mountinfo: string): string | undefined {
  let place: string | undefined;
  let longest = 0;
  for (const line of mountinfo.split('\n')) {
    const [mount = '', system = ''] = line.split(' - ');
    const [, , , root, point] = mount.split(' ').map(unescaped);
    const [, source = ''] = system.split(' ').map(unescaped);
    if (root === undefined || point === undefined || !isBelow(path, point) || point.length < longest) continue;
    // Of several at one point, the last one covers the others.
    longest = point.length;
    place = source.startsWith('/dev/') ? `${source}:${join(root, relative(point, path))}` : undefined;
  }
  return place;
}

function isBelow(path: string, point: string): boolean {
  return point === '/' || path === point || path.startsWith(`${point}/`);
}

/** Spaces and the like are octal numbers there. */
function unescaped(text: string): string {
  return text.replaceAll(/\\([0-7]{3})/g, (_all, octal: string) => String.fromCharCode(Number.parseInt(octal, 8)));
}

/**
 * Shows other processes of this machine that a platform lives, also when its data folder was moved meanwhile. It is a socket with
 * a name and without a file: the kernel ends it with its process.
 */
export async function showPresence(id: string): Promise<AsyncDisposable> {
  const server = createServer((socket) => socket.destroy());
  server.unref();
  server.listen(socketOf(id));
  // Another process with the same data folder shows it already, or this system knows no such names.
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
