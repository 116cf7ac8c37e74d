/**
 * Registry clients for tests. skopeo, podman and buildah are installed; crane, oras, buildx, and the Go that compiles regctl are
 * unpacked from Debian's unstable suite into a cache folder.
 */
import { mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { findProgram, runCommand } from '../../../setup/command.ts';
import type { Terminal } from '../../../setup/terminal.ts';
import { messageOf } from '../message-of.ts';
import type { AptPackages } from './apt-packages.ts';
import { cached, cachedPath, pathExists } from './cached.ts';
import { modernFolder } from './docker-packages.ts';
import { debianKeyring, notDebian, unpackUnstable } from './unstable-packages.ts';

export type ClientProgram = keyof typeof places;

/** Needs Go 1.25 or newer. */
const regctlVersion = 'v0.11.5';

const regctlFolder = `regctl-${regctlVersion}`;
const unpackedFolder = 'registry-clients';

/** Compiling takes a minute on two cores, and twice as long while other packages are installed. */
const compileTimeoutMs = 300_000;

/** The cache folder and path of each program that is not on the PATH. */
const places = {
  skopeo: [],
  podman: [],
  buildah: [],
  crane: [unpackedFolder, 'usr/bin/crane'],
  oras: [unpackedFolder, 'usr/bin/oras'],
  'docker-buildx': [unpackedFolder, 'usr/libexec/docker/cli-plugins/docker-buildx'],
  regctl: [regctlFolder, 'regctl'],
} as const satisfies Record<string, readonly [] | readonly [folder: string, path: string]>;

/** The path of a client, if it is installed. */
export async function clientProgram(name: ClientProgram): Promise<string | undefined> {
  const installed = await findProgram(name);
  const [folder, path] = places[name];
  if (installed !== undefined || folder === undefined) return installed;
  const cached = join(cachedPath(folder), path);
  return (await pathExists(cached)) ? cached : undefined;
}

/** The path of a program from the modern engine's packages, if they are unpacked. */
export async function modernProgram(path: string): Promise<string | undefined> {
  const program = join(modernFolder(), 'usr', path);
  return (await pathExists(program)) ? program : undefined;
}

/** Installs the missing clients, as far as this machine allows. Returns what cannot be tested, and why. */
export async function installClients(packages: AptPackages): Promise<{ what: string; why: string }[]> {
  const installs = [
    { names: ['skopeo', 'podman', 'buildah'], install: async () => await installOwn(packages) },
    { names: ['crane', 'oras', 'docker-buildx'], install: async () => await installUnpacked(packages.terminal) },
    { names: ['regctl'], install: async () => await installRegctl(packages.terminal) },
  ] as const;
  const skipped = [];
  for (const { names, install } of installs) {
    if ((await missing(names)).length === 0) continue;
    const problem = await install().catch(messageOf);
    const still = await missing(names);
    if (still.length === 0) continue;
    skipped.push({ what: `the registry with ${still.join(', ')}`, why: problem ?? 'not available on this machine' });
  }
  return skipped;
}

async function missing(names: readonly ClientProgram[]): Promise<ClientProgram[]> {
  const found = await Promise.all(names.map(async (name) => ({ name, path: await clientProgram(name) })));
  return found.flatMap(({ name, path }) => (path === undefined ? [name] : []));
}

async function installOwn(packages: AptPackages): Promise<string | undefined> {
  // podman prefers crun, but the engines need runc anyway.
  return await packages.install('Installing registry clients', ['runc', 'skopeo', 'podman', 'buildah']);
}

async function installUnpacked(terminal: Terminal): Promise<string | undefined> {
  if (!(await pathExists(debianKeyring))) return notDebian;
  await terminal.withProgress('Unpacking registry clients', async (detail) => {
    await cached(
      unpackedFolder,
      async (folder) => await unpackUnstable(['crane', 'oras', 'docker-buildx'], folder, detail),
    );
  });
  return undefined;
}

async function installRegctl(terminal: Terminal): Promise<string | undefined> {
  if (!(await pathExists(debianKeyring))) return notDebian;
  await terminal.withProgress('Compiling regctl', async (detail) => {
    await cached(regctlFolder, async (folder) => {
      const go = join(folder, 'go');
      const modules = join(folder, 'modules');
      for (const each of [go, modules]) await mkdir(each);
      // These packages only depend on the packages of the current version.
      await unpackUnstable(['golang-go', 'golang-src'], go, detail, (name) => name.startsWith('golang-'));
      detail('compiling');
      const source = `github.com/regclient/regclient/cmd/regctl@${regctlVersion}`;
      const env = { GOBIN: folder, GOMODCACHE: modules, GOCACHE: modules, CGO_ENABLED: '0', GOTOOLCHAIN: 'local' };
      const options = { cwd: folder, env, signal: AbortSignal.timeout(compileTimeoutMs) };
      await runCommand(join(go, 'usr/bin/go'), ['install', '-trimpath', '-modcacherw', source], options);
      for (const each of [go, modules]) await rm(each, { recursive: true });
    });
  });
  return undefined;
}
