/** Installing what the tests' Docker Engines need, where root and apt make that possible. */
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { findProgram, tryCommand } from '../../../setup/command.ts';
import type { AptPackages } from './apt-packages.ts';
import { cached, cachedPath, isThere } from './cached.ts';
import type { EngineKind } from '../engines/docker-engine.ts';
import { debianKeyring, notDebian, unpackUnstable } from './unstable-packages.ts';

/** What engines for tests are started with, and the packages that bring it. */
export const enginePrograms = {
  dockerd: 'docker.io',
  containerd: 'containerd',
  runc: 'runc',
  iptables: 'iptables',
  ip: 'iproute2',
  setpriv: 'util-linux',
};

/** What is taken from the unstable suite. Its runc is left out: it needs a newer C library, and the machine's serves both. */
const modernPackages = ['docker.io', 'docker-cli', 'docker-compose', 'containerd'];

/** Its name says what is in it: with another package it is another folder. */
const modernName = `docker-modern-${modernPackages.join('-')}`;

/** Where the modern engine is unpacked. It is 300 MB, so it stays for the next run. */
export function modernFolder(): string {
  return cachedPath(modernName);
}

/** Makes sure that an engine can be started. Returns why not, or nothing. */
export async function installEngine(kind: EngineKind, packages: AptPackages): Promise<string | undefined> {
  if (process.platform !== 'linux' || process.getuid?.() !== 0) return 'only root on Linux can start one';
  const problem = await installStable(packages);
  if (problem !== undefined || kind === 'stable') return problem;
  if (await isThere(modernFolder())) return undefined;
  if (!(await isThere(debianKeyring))) return notDebian;
  try {
    await packages.terminal.during('Unpacking a modern Docker Engine', installModern);
    return undefined;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

/** Makes sure that there is a static busybox, of which test images are made. Returns why not, or nothing. */
export async function installBusybox(packages: AptPackages): Promise<string | undefined> {
  if ((await staticBusybox()) !== undefined) return undefined;
  return await packages.install('Installing busybox-static', ['busybox-static']);
}

/** Where a busybox is that runs in an empty image. */
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
    for (const place of ['bin', 'sbin']) await rm(join(folder, 'usr', place, 'runc'), { force: true });
  });
}
