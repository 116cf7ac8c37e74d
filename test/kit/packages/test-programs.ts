/**
 * The PATH of tests: the programs of a fresh system, and of the packages that set-up installs for tests. Programs that a developer
 * installed by hand are not in it, so that tests cannot depend on them. Without Debian packages, the PATH is unchanged, because no
 * command reports which programs were installed by hand.
 */
import { mkdir, readdir, readlink, realpath, symlink } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { findProgram, runCommand, tryCommand } from '../../../setup/command.ts';
import type { AptPackages } from './apt-packages.ts';
import { chromiumPrograms } from './chromium.ts';
import { enginePrograms } from './docker-packages.ts';
import { fileSystemPrograms } from '../machine/loop-disk.ts';
import { javaPrograms } from '../servers/mongodb-install.ts';

/** The folders in which packages install programs, so neither `/usr/local` nor anything below a home folder. */
const systemFolders = ['/usr/sbin', '/usr/bin', '/sbin', '/bin'];

/** Other programs that tests call, and their packages. */
const toolPrograms = {
  curl: 'curl',
  openssl: 'openssl',
  faketime: 'faketime',
  git: 'git',
  ...fileSystemPrograms,
};

/** Every program that tests call and a fresh system lacks. The modules of the kit install them. */
const declaredPrograms = [
  ...Object.keys({ ...toolPrograms, ...enginePrograms, ...javaPrograms }),
  'docker',
  'busybox',
  'redis-server',
  'redis-cli',
  'mongod',
  'skopeo',
  'podman',
  'buildah',
  ...chromiumPrograms,
];

/** Whether this machine has Debian packages. */
export async function hasPackages(): Promise<boolean> {
  return (await findProgram('dpkg-query')) !== undefined;
}

/** The PATH during installation: programs in other folders count as missing. */
export function systemPath(): string {
  return systemFolders.join(':');
}

/** Installs the other programs that tests call. Returns a problem, or undefined. */
export async function installTools(packages: AptPackages): Promise<string | undefined> {
  const missing = [];
  for (const [program, name] of Object.entries(toolPrograms)) if (!(await findProgram(program))) missing.push(name);
  if (missing.length === 0) return undefined;
  return await packages.install('Installing tools', missing);
}

/**
 * Creates a folder with links to the programs that tests may call: those of the base system, and of the declared programs'
 * packages and their dependencies. `own` adds other programs by name: the Node and npm that run the tests.
 */
export async function linkPrograms(folder: string, own: Readonly<Record<string, string>>): Promise<void> {
  const packages = await installedPackages();
  const base = packages.filter(({ isBase }) => isBase).map(({ name }) => name);
  const allowed = withDependencies(packages, [...base, ...(await ownersOf(declaredPrograms))]);
  const links = new Map(Object.entries(own));
  for (const path of await programsOf(allowed)) if (!links.has(basename(path))) links.set(basename(path), path);
  await mkdir(folder);
  await Promise.all(Array.from(links, async ([name, path]) => await symlink(path, join(folder, name))));
}

interface Package {
  readonly name: string;
  /** Whether every system has this package. */
  readonly isBase: boolean;
  /** The names that it provides besides its own. */
  readonly provides: readonly string[];
  /** All alternatives of all its dependencies. */
  readonly dependsOn: readonly string[];
}

async function installedPackages(): Promise<Package[]> {
  const fields = ['db:Status-Status', 'Package', 'Essential', 'Priority', 'Provides', 'Pre-Depends', 'Depends'];
  const format = `${fields.map((field) => `\${${field}}`).join('\t')}\n`;
  const output = await runCommand('dpkg-query', ['--show', `--showformat=${format}`]);
  return output.split('\n').flatMap((line) => {
    const [status, name = '', essential, priority = '', provides = '', before = '', depends = ''] = line.split('\t');
    if (status !== 'installed') return [];
    const isBase = essential === 'yes' || ['required', 'important'].includes(priority);
    return [{ name, isBase, provides: namesIn(provides), dependsOn: [...namesIn(before), ...namesIn(depends)] }];
  });
}

/** The names in `docker-cli (>= 20), runc | crun:any`. */
function namesIn(relations: string): string[] {
  return relations.split(/[,|]/).flatMap((each) => /^\s*([a-z0-9][a-z0-9.+-]*)/.exec(each)?.[1] ?? []);
}

function withDependencies(packages: readonly Package[], roots: readonly string[]): ReadonlySet<string> {
  const byName = new Map(packages.map((each) => [each.name, each]));
  const providers = Map.groupBy(
    packages.flatMap((each) => each.provides.map((name) => ({ name, each }))),
    ({ name }) => name,
  );
  const found = new Set<string>();
  const open = [...roots];
  for (let name = open.pop(); name !== undefined; name = open.pop()) {
    const own = byName.get(name);
    for (const each of own ? [own] : (providers.get(name) ?? []).map((provider) => provider.each)) {
      if (found.has(each.name)) continue;
      found.add(each.name);
      open.push(...each.dependsOn);
    }
  }
  return found;
}

/** The packages that contain these programs. */
async function ownersOf(names: readonly string[]): Promise<string[]> {
  const paths = names.flatMap((name) => systemFolders.map((folder) => join(folder, name)));
  const files = await Promise.all(
    paths.map(async (path) => {
      const target = await realpath(path).catch(() => undefined);
      return target === undefined ? [] : [path, ...bothNames(target)];
    }),
  );
  if (files.flat().length === 0) return [];
  // The command fails if a file is unknown, but still prints the packages of the others.
  const { stdout } = await tryCommand('dpkg-query', ['--search', ...new Set(files.flat())]);
  return stdout.split('\n').flatMap((line) => /^(?!diversion )([^:,]+)/.exec(line)?.[1] ?? []);
}

/** Both paths of a file: packages may list it below `/bin`, from before `/bin` and `/usr/bin` were merged. */
function bothNames(path: string): string[] {
  return [path, path.startsWith('/usr/') ? path.slice('/usr'.length) : `/usr${path}`];
}

/** The programs of packages, also under their names in `/etc/alternatives`. */
async function programsOf(allowed: ReadonlySet<string>): Promise<string[]> {
  const qualified = await runCommand('dpkg-query', ['--show', '--showformat=${Package} ${binary:Package}\n']);
  const names = qualified.split('\n').flatMap((line) => {
    const [name = '', binary = ''] = line.split(' ');
    return allowed.has(name) ? [binary] : [];
  });
  const files = new Set((await runCommand('dpkg-query', ['--listfiles', ...names])).split('\n').flatMap(bothNames));
  const programs = [];
  for (const folder of systemFolders) {
    for (const name of await readdir(folder)) {
      const path = join(folder, name);
      if (files.has(path) || (await isAlternativeFor(path, files))) programs.push(path);
    }
  }
  return programs;
}

async function isAlternativeFor(path: string, files: ReadonlySet<string>): Promise<boolean> {
  const target = await readlink(path).catch(() => '');
  if (!target.startsWith('/etc/alternatives/')) return false;
  return files.has(await realpath(path).catch(() => ''));
}
