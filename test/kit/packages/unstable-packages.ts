/** Programs of Debian's unstable suite, unpacked into a folder: nothing of the machine's own system changes. */
import { mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { runCommand } from '../../../setup/command.ts';

/** What Debian signs its suites with. Without it there is nothing to check the packages against. */
export const debianKeyring = '/usr/share/keyrings/debian-archive-keyring.gpg';

/** Why nothing can be unpacked where `debianKeyring` is missing. */
export const notDebian = 'it is taken from Debian’s unstable suite, and this is not Debian';

/**
 * Downloads packages and unpacks them into a folder, with those of their direct dependencies that `isWanted` names. `detail`
 * hears what is being done.
 */
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
    const said = await runCommand('apt-cache', [...options, 'depends', '--important', ...packages]);
    const dependencies = said
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

/** The package mirror that this machine uses already, which may be a company's own. */
async function mirror(): Promise<string> {
  const indexTargets = async () => await runCommand('apt-get', ['indextargets', '--format', '$(SITE)']);
  const known = await indexTargets();
  // A machine that has never read its package lists names no site.
  if (known.trim() === '') await runCommand('apt-get', ['-q', 'update']);
  const sites = known.trim() === '' ? await indexTargets() : known;
  const site = sites.split('\n').find((line) => line && !line.includes('security'));
  return site ?? 'http://deb.debian.org/debian';
}
