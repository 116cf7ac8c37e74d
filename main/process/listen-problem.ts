/** Explains to the operator why a process cannot listen on a port. */
import { readFile, readdir, readlink } from 'node:fs/promises';
import { basename } from 'node:path';
import { ConfigError } from '../../core/config/settings.ts';
import { systemCode } from '../../core/files/system-code.ts';

/** The address of a listener, and the settings that configure it. */
export interface ListenAddress {
  readonly host: string;
  readonly port: number;
  readonly hostVariable: string;
  readonly portVariable: string;
}

/** Turns an error of `listen` into a `ConfigError` that names the setting to change. Any other error is returned unchanged. */
export async function listenProblem(error: unknown, address: ListenAddress): Promise<unknown> {
  const message = isOfListening(error) ? await explain(systemCode(error), address) : undefined;
  return message === undefined ? error : new ConfigError(message, { cause: error });
}

/** Files, too, have errors such as EACCES. */
function isOfListening(error: unknown): boolean {
  if (!(error instanceof Error) || !('syscall' in error)) return false;
  return error.syscall === 'listen' || error.syscall === 'getaddrinfo';
}

async function explain(code: string | undefined, address: ListenAddress): Promise<string | undefined> {
  const { host, port, hostVariable, portVariable } = address;
  if (code === 'EADDRINUSE') {
    const holder = (await portHolder(port)) ?? 'another process';
    return `${portVariable}: port ${port} of ${host} is in use by ${holder}: stop that process, or set ${portVariable} to another port`;
  }
  if (code === 'EACCES') {
    return `${portVariable}: this user may not listen on port ${port}: set ${portVariable} to 1024 or higher`;
  }
  if (code === 'EADDRNOTAVAIL' || code === 'ENOTFOUND') {
    return `${hostVariable}: this machine has no address ${host}: set ${hostVariable} to an address of this machine`;
  }
  return undefined;
}

/** The code for a listening socket in `/proc/net/tcp`. */
const listening = '0A';

/** Returns a text such as `process 123 (node)`. Linux shows a user only the sockets of that user's processes, and root all. */
async function portHolder(port: number): Promise<string | undefined> {
  const inodes = new Set<string>();
  for (const table of ['/proc/net/tcp', '/proc/net/tcp6']) {
    for (const line of (await readFile(table, 'utf8').catch(() => '')).split('\n')) {
      const [, local = '', , state, , , , , , inode = ''] = line.trim().split(/\s+/);
      if (state === listening && Number.parseInt(local.split(':')[1] ?? '', 16) === port) inodes.add(inode);
    }
  }
  if (inodes.size === 0) return undefined;
  const pids = (await readdir('/proc').catch(() => [])).filter((name) => /^\d+$/.test(name));
  for (const pid of pids) {
    if (!(await hasSocket(pid, inodes))) continue;
    const [program = ''] = (await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '')).split('\0');
    return `process ${pid} (${basename(program)})`;
  }
  return undefined;
}

async function hasSocket(pid: string, inodes: ReadonlySet<string>): Promise<boolean> {
  const folder = `/proc/${pid}/fd`;
  for (const descriptor of await readdir(folder).catch(() => [])) {
    const target = await readlink(`${folder}/${descriptor}`).catch(() => '');
    const inode = /^socket:\[(\d+)\]$/.exec(target)?.[1];
    if (inode !== undefined && inodes.has(inode)) return true;
  }
  return false;
}
