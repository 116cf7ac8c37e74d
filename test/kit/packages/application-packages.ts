/** The contents of images of ordinary applications: a small Debian, and packages from npm and PyPI. Cached for later runs. */
import { createHash } from 'node:crypto';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { findProgram, runCommand } from '../../../setup/command.ts';
import { messageOf } from '../message-of.ts';
import type { AptPackages } from './apt-packages.ts';
import { cached, cachedPath, pathExists } from './cached.ts';
import { installedFromNpm } from './npm-packages.ts';

/** Packages of one source, with exact releases. */
export type ApplicationPackages =
  | { readonly from: 'npm'; readonly names: readonly string[] }
  | { readonly from: 'pypi'; readonly names: readonly string[] };

const release = 'bookworm';

/** The Python of this release of Debian, for which packages from PyPI are chosen. */
const pythonVersion = '3.11';

/** What images of the applications contain besides the smallest Debian. */
const debianPackages = ['nginx-light', 'python3', 'redis-server', 'tigervnc-standalone-server', 'twm', 'xterm'];

/** Files that no application needs: documentation, translations, and software rendering of graphics. */
const excluded = [
  '/usr/share/doc/*',
  '/usr/share/man/*',
  '/usr/share/locale/*',
  '/usr/lib/*/libLLVM*',
  '/usr/lib/*/dri/*',
];

const debianFolder = `debian-${release}-${hashOf([...debianPackages, ...excluded])}`;

/** A hundred packages are downloaded and unpacked, on a busy machine. */
const installTimeoutMs = 600_000;

/** The root file system of Debian as a tar, if it was built. */
export async function debianRoot(): Promise<string | undefined> {
  const path = join(cachedPath(debianFolder), 'root.tar');
  return (await pathExists(path)) ? path : undefined;
}

/** The folder with packages: `node_modules` from npm, modules of Python from PyPI. `undefined` if they are not installed. */
export async function packagesFolder(packages: ApplicationPackages): Promise<string | undefined> {
  const path = join(cachedPath(folderOf(packages)), packages.from === 'npm' ? 'node_modules' : 'site');
  return (await pathExists(path)) ? path : undefined;
}

/** Installs everything. Returns why something cannot be used, or `undefined`. */
export async function installApplicationPackages(
  apt: AptPackages,
  npm: string | undefined,
  wanted: readonly ApplicationPackages[],
): Promise<string | undefined> {
  try {
    if (!(await debianRoot())) {
      const problem = (await findProgram('mmdebstrap'))
        ? undefined
        : await apt.install('Installing mmdebstrap', ['mmdebstrap']);
      if (problem !== undefined) return problem;
      await apt.terminal.withProgress('Making a small Debian for images', makeDebian);
    }
    for (const packages of wanted) {
      if (await packagesFolder(packages)) continue;
      if (packages.from === 'npm' && npm === undefined) return 'npm is not installed';
      await apt.terminal.withProgress(`Installing ${packages.names.join(', ')}`, async () => {
        if (packages.from === 'pypi') await installFromPypi(packages.names);
        else await installedFromNpm(folderOf(packages), npm ?? '', packages.names);
      });
    }
    return undefined;
  } catch (error) {
    return messageOf(error);
  }
}

async function makeDebian(): Promise<void> {
  await cached(debianFolder, async (making) => {
    const target = join(making, 'root.tar');
    const args = [
      '--quiet',
      '--mode=root',
      '--variant=minbase',
      `--include=${debianPackages.join(',')}`,
      ...excluded.map((path) => `--dpkgopt=path-exclude=${path}`),
      release,
      target,
    ];
    await runCommand('mmdebstrap', args, { signal: AbortSignal.timeout(installTimeoutMs) });
  });
}

/** Installs packages for the Python of Debian, independent of the Python of this machine. */
async function installFromPypi(names: readonly string[]): Promise<void> {
  await cached(folderOf({ from: 'pypi', names }), async (making) => {
    const machine = process.arch === 'arm64' ? 'aarch64' : 'x86_64';
    const platforms = ['manylinux2014', 'manylinux_2_28'].flatMap((each) => ['--platform', `${each}_${machine}`]);
    const choose = ['--only-binary=:all:', '--python-version', pythonVersion, ...platforms];
    const args = ['-m', 'pip', 'install', '--quiet', '--disable-pip-version-check', '--target', join(making, 'site')];
    const signal = AbortSignal.timeout(installTimeoutMs);
    // Debian's Python has pip only in a virtual environment.
    const environment = join(making, 'environment');
    await runCommand('python3', ['-m', 'venv', environment], { signal });
    await runCommand(join(environment, 'bin/python'), [...args, ...choose, ...names], { signal });
    await rm(environment, { recursive: true });
  });
}

function folderOf({ from, names }: ApplicationPackages): string {
  return `application-${from}-${hashOf(names)}`;
}

function hashOf(names: readonly string[]): string {
  return createHash('sha256').update(names.join(' ')).digest('hex').slice(0, 12);
}
