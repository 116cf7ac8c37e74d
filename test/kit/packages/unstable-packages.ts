/** Unpacks programs of Debian's unstable suite into a folder, without changing the system. */
import { mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { runCommand } from '../../../setup/command.ts';

/** Debian's signing keys, which are needed to verify the packages. */
export const debianKeyring = '/usr/share/keyrings/debian-archive-keyring.gpg';

/** Why nothing can be unpacked without `debianKeyring`. */
export const notDebian = 'it comes from Debian’s unstable suite, and this is not Debian';

/** Downloads and unpacks packages, and their direct dependencies for which `isWanted` is true. `detail` reports progress. */
export async function unpackUnstable(
  packages: readonly string[],
  folder: string,
  detail: (words: string) => void,
  isWanted: (dependency: string) => boolean = () => false,
): Promise<void> {
  const apt = await mkdtemp(join(tmpdir(), 'berth-apt-'));
  try {
    await mkdir(join(apt, 'lists/partial'), { recursive: true });
    await mkdir(join(apt, 'archives/partial'), { recursive: true });
    await writeFile(join(apt, 'sources.list'), `deb [signed-by=${debianKeyring}] ${await mirror()} sid main\n`);
    const options = [
      ['Dir::Etc::sourcelist', join(apt, 'sources.list')],
      ['Dir::Etc::sourceparts', '/dev/null'],
      ['Dir::State::lists', join(apt, 'lists')],
      ['Dir::Cache', apt],
      ['APT::Sandbox::User', 'root'],
    ].flatMap(([name, value]) => ['-o', `${name}=${value}`]);
    detail('reading the package lists');
    await runCommand('apt-get', ['-q', ...options, 'update']);
    const output = await runCommand('apt-cache', [...options, 'depends', '--important', ...packages]);
    const dependencies = output
      .split('\n')
      .flatMap((line) => /^ *(?:Pre)?Depends: ([a-z0-9.+-]+)$/.exec(line)?.[1] ?? []);
    const wanted = new Set([...packages, ...dependencies.filter(isWanted)]);
    detail('downloading');
    await runCommand('apt-get', ['-q', ...options, 'download', ...wanted], { cwd: apt });
    detail('unpacking');
    for (const name of await readdir(apt)) {
      if (name.endsWith('.deb')) await runCommand('dpkg', ['-x', join(apt, name), folder]);
    }
  } finally {
    await rm(apt, { recursive: true });
  }
}

/** The package mirror that this machine uses, which may be a private mirror. */
async function mirror(): Promise<string> {
  const indexTargets = async () => await runCommand('apt-get', ['indextargets', '--format', '$(SITE)']);
  const known = await indexTargets();
  // Without package lists, apt-get prints no mirror.
  if (known.trim() === '') await runCommand('apt-get', ['-q', 'update']);
  const sites = known.trim() === '' ? await indexTargets() : known;
  const site = sites.split('\n').find((line) => line && !line.includes('security'));
  return site ?? 'http://deb.debian.org/debian';
}
