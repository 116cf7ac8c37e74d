/**
 * The PATH of tests: what a fresh system has, and the packages that set-up installs for them. A program that a developer once
 * installed by hand is not in it, so that tests cannot come to need one which other machines lack. Where packages are not
 * Debian's there is no telling the one from the other, and the PATH stays as it is.
 */
import { mkdir, readdir, readlink, realpath, symlink } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { findProgram, runCommand, tryCommand } from '../../../setup/command.ts';
import type { AptPackages } from './apt-packages.ts';
import { enginePrograms } from './docker-packages.ts';
import { javaPrograms } from '../servers/mongodb-install.ts';

/** Where packages of the system put programs. Not `/usr/local`, nor anything below a home. */
const systemFolders = ['/usr/sbin', '/usr/bin', '/sbin', '/bin'];

/** Further programs that tests call, and the packages that bring them. */
const toolPrograms = { curl: 'curl', openssl: 'openssl', faketime: 'faketime' };

/** Every program that tests call and that is not part of a fresh system. Each has an installer in this folder. */
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
];

/** Whether this machine's programs come from packages that can be asked for. */
export async function hasPackages(): Promise<boolean> {
  return (await findProgram('dpkg-query')) !== undefined;
}

/** The PATH while packages are installed: what stands elsewhere counts as missing. */
export function systemPath(): string {
  return systemFolders.join(':');
}

/** Installs programs that have no installer of their own. Returns what cannot be tested, and why. */
export async function installTools(packages: AptPackages): Promise<string | undefined> {
  const missing = [];
  for (const [program, name] of Object.entries(toolPrograms)) if (!(await findProgram(program))) missing.push(name);
  if (missing.length === 0) return undefined;
  return await packages.install('Installing tools', missing);
}

/**
 * Makes a folder of links to the programs that tests may call: those of the base system, and of the packages that bring the
 * declared programs, with what these depend on. `own` are further ones, by name: Node and npm, with which Berth was started.
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
  /** Whether every system has it. */
  readonly isBase: boolean;
  /** What it stands for besides its own name. */
  readonly provides: readonly string[];
  /** All alternatives of all its dependencies. */
  readonly dependsOn: readonly string[];
}

async function installedPackages(): Promise<Package[]> {
  const fields = ['db:Status-Status', 'Package', 'Essential', 'Priority', 'Provides', 'Pre-Depends', 'Depends'];
  const format = `${fields.map((field) => `\${${field}}`).join('\t')}\n`;
  const said = await runCommand('dpkg-query', ['--show', `--showformat=${format}`]);
  return said.split('\n').flatMap((line) => {
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

/** The packages from which programs in the system's folders come. */
async function ownersOf(names: readonly string[]): Promise<string[]> {
  const paths = names.flatMap((name) => systemFolders.map((folder) => join(folder, name)));
  const files = await Promise.all(
    paths.map(async (path) => {
      const target = await realpath(path).catch(() => undefined);
      return target === undefined ? [] : [path, ...bothNames(target)];
    }),
  );
  if (files.flat().length === 0) return [];
  // It fails when one of them is unknown, and names the others all the same.
  const { stdout } = await tryCommand('dpkg-query', ['--search', ...new Set(files.flat())]);
  return stdout.split('\n').flatMap((line) => /^(?!diversion )([^:,]+)/.exec(line)?.[1] ?? []);
}

/** A package may have listed its file from before `/bin` and `/usr/bin` became one. */
function bothNames(path: string): string[] {
  return [path, path.startsWith('/usr/') ? path.slice('/usr'.length) : `/usr${path}`];
}

/** The programs of packages, and those which the system offers under another name (`/etc/alternatives`). */
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
