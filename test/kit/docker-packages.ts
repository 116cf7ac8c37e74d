/** Installing what the tests' Docker Engines need, where root and apt make that possible. */
import { access, mkdir, readdir, rm, writeFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { installWithApt } from '../../setup/apt.ts';
import { findProgram, runCommand, tryCommand } from '../../setup/command.ts';
import type { Terminal } from '../../setup/terminal.ts';
import type { EngineKind } from './docker-engine.ts';

/** Programs that the tests call, and the packages that bring them. */
const neededPrograms = {
  dockerd: 'docker.io',
  runc: 'runc',
  iptables: 'iptables',
  ip: 'iproute2',
  setpriv: 'util-linux',
};

/** What is taken from the unstable suite. Its runc is left out: it needs a newer C library, and the machine's serves both. */
const modernPackages = ['docker.io', 'docker-cli', 'containerd'];

const keyring = '/usr/share/keyrings/debian-archive-keyring.gpg';

/** Where the modern engine is unpacked. It is 300 MB, so it stays for the next run. */
export function modernFolder(): string {
  return join(cacheFolder(), 'root');
}

function cacheFolder(): string {
  const base = process.env['XDG_CACHE_HOME'] || join(homedir(), '.cache');
  return join(base, 'berth-tests', 'docker-modern');
}

/** Makes sure that an engine can be started. Returns why not, or nothing. */
export async function installEngine(kind: EngineKind, terminal: Terminal): Promise<string | undefined> {
  if (process.platform !== 'linux' || process.getuid?.() !== 0) return 'only root on Linux can start one';
  const problem = await installStable(terminal);
  if (problem !== undefined || kind === 'stable') return problem;
  if (await isThere(join(cacheFolder(), '.complete'))) return undefined;
  if (!(await isThere(keyring))) return 'it is taken from Debian’s unstable suite, and this is not Debian';
  try {
    await terminal.during('Unpacking a modern Docker Engine', installModern);
    return undefined;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

/** Makes sure that there is a static busybox, of which test images are made. Returns why not, or nothing. */
export async function installBusybox(terminal: Terminal): Promise<string | undefined> {
  if ((await staticBusybox()) !== undefined) return undefined;
  if (process.getuid?.() !== 0 || !(await findProgram('apt-get'))) return 'the package busybox-static is missing';
  return await installWithApt(terminal, 'Installing busybox-static', ['busybox-static']);
}

/** Where a busybox is that runs in an empty image. */
export async function staticBusybox(): Promise<string | undefined> {
  const path = await findProgram('busybox');
  if (path === undefined) return undefined;
  // ldd fails on a program that needs no library.
  return (await tryCommand('ldd', [path])).code === 0 ? undefined : path;
}

async function installStable(terminal: Terminal): Promise<string | undefined> {
  const missing = [];
  for (const [program, name] of Object.entries(neededPrograms)) if (!(await findProgram(program))) missing.push(name);
  const noClient = !(await findProgram('docker'));
  if (missing.length === 0 && !noClient) return undefined;
  if (!(await findProgram('apt-get'))) return `these packages are missing: ${missing.join(', ')}`;
  return await installWithApt(terminal, 'Installing Docker Engine', missing, noClient ? ['docker-cli'] : []);
}

async function installModern(detail: (words: string) => void): Promise<void> {
  const cache = cacheFolder();
  const apt = join(cache, 'apt');
  await rm(cache, { recursive: true, force: true });
  await mkdir(join(apt, 'lists/partial'), { recursive: true });
  await mkdir(join(apt, 'archives/partial'), { recursive: true });
  await mkdir(modernFolder(), { recursive: true });
  await writeFile(join(apt, 'sources.list'), `deb [signed-by=${keyring}] ${await mirror()} sid main\n`);
  const options = [
    ['Dir::Etc::sourcelist', join(apt, 'sources.list')],
    ['Dir::Etc::sourceparts', '/dev/null'],
    ['Dir::State::lists', join(apt, 'lists')],
    ['Dir::Cache', apt],
    ['APT::Sandbox::User', 'root'],
  ].flatMap(([name, value]) => ['-o', `${name}=${value}`]);
  detail('reading the package lists');
  await runCommand('apt-get', ['-q', ...options, 'update']);
  detail('downloading');
  await runCommand('apt-get', ['-q', ...options, 'download', ...modernPackages], { cwd: apt });
  detail('unpacking');
  for (const name of await readdir(apt)) {
    if (name.endsWith('.deb')) await runCommand('dpkg', ['-x', join(apt, name), modernFolder()]);
  }
  for (const folder of ['bin', 'sbin']) await rm(join(modernFolder(), 'usr', folder, 'runc'), { force: true });
  await rm(apt, { recursive: true });
  await writeFile(join(cache, '.complete'), '');
}

/** The package mirror that this machine uses already, which may be a company's own. */
async function mirror(): Promise<string> {
  const sites = await runCommand('apt-get', ['indextargets', '--format', '$(SITE)']);
  const site = sites.split('\n').find((line) => line && !line.includes('security'));
  return site ?? 'http://deb.debian.org/debian';
}

async function isThere(path: string): Promise<boolean> {
  return await access(path).then(
    () => true,
    () => false,
  );
}
