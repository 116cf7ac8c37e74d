/** Installs the packages of the tests' Docker Engines, as root with apt. */
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { findProgram, tryCommand } from '../../../setup/command.ts';
import { messageOf } from '../message-of.ts';
import type { AptPackages } from './apt-packages.ts';
import { cached, cachedPath, pathExists } from './cached.ts';
import type { EngineKind } from '../engines/docker-engine.ts';
import { debianKeyring, notDebian, unpackUnstable } from './unstable-packages.ts';

/** The programs that test engines need, and their packages. */
export const enginePrograms = {
  dockerd: 'docker.io',
  containerd: 'containerd',
  runc: 'runc',
  iptables: 'iptables',
  ip: 'iproute2',
  setpriv: 'util-linux',
};

/** The packages from the unstable suite. Its runc is omitted: it needs a newer C library, and both engines can use the machine's. */
const modernPackages = ['docker.io', 'docker-cli', 'docker-compose', 'containerd'];

/** Contains the names of the packages, so that another list of packages has another folder. */
const modernName = `docker-modern-${modernPackages.join('-')}`;

/** The folder of the unpacked modern engine, which is cached because it has 300 MB. */
export function modernFolder(): string {
  return cachedPath(modernName);
}

/** Installs the packages of an engine. Returns a problem, or undefined. */
export async function installEngine(kind: EngineKind, packages: AptPackages): Promise<string | undefined> {
  if (process.platform !== 'linux' || process.getuid?.() !== 0) return 'only root on Linux can start one';
  const problem = await installStable(packages);
  if (problem !== undefined || kind === 'stable') return problem;
  if (await pathExists(modernFolder())) return undefined;
  if (!(await pathExists(debianKeyring))) return notDebian;
  try {
    await packages.terminal.withProgress('Unpacking a modern Docker Engine', installModern);
    return undefined;
  } catch (error) {
    return messageOf(error);
  }
}

/** Installs a static busybox, which test images contain. Returns a problem, or undefined. */
export async function installBusybox(packages: AptPackages): Promise<string | undefined> {
  if ((await staticBusybox()) !== undefined) return undefined;
  return await packages.install('Installing busybox-static', ['busybox-static']);
}

/** The path of a busybox that runs in an empty image, if installed. */
export async function staticBusybox(): Promise<string | undefined> {
  const path = await findProgram('busybox');
  if (path === undefined) return undefined;
  // ldd fails on a program that needs no library.
  return (await tryCommand('ldd', [path])).code === 0 ? undefined : path;
}

async function installStable(packages: AptPackages): Promise<string | undefined> {
  const missing = [];
  for (const [program, name] of Object.entries(enginePrograms)) if (!(await findProgram(program))) missing.push(name);
  const noClient = !(await findProgram('docker'));
  if (missing.length === 0 && !noClient) return undefined;
  return await packages.install('Installing Docker Engine', missing, noClient ? ['docker-cli'] : []);
}

async function installModern(detail: (words: string) => void): Promise<void> {
  await cached(modernName, async (folder) => {
    await unpackUnstable(modernPackages, folder, detail);
    for (const programs of ['bin', 'sbin']) await rm(join(folder, 'usr', programs, 'runc'), { force: true });
  });
}
