/** Installing packages on Debian and Ubuntu. */
import { tryCommand } from './command.ts';
import type { Terminal } from './terminal.ts';

/** Keeps apt-get from asking questions, and its messages in English. */
const environment = { DEBIAN_FRONTEND: 'noninteractive', LC_ALL: 'C.UTF-8' };

/** Another apt-get, such as the updates of a fresh machine, can hold the lock for a while. */
const lockTimeoutSeconds = 120;

/**
 * Installs `packages`, and those of `ifKnown` that this release has. Returns an error message with the last lines of apt-get, or
 * `undefined`.
 */
export async function installWithApt(
  terminal: Terminal,
  what: string,
  packages: readonly string[],
  ifKnown: readonly string[] = [],
): Promise<string | undefined> {
  return await terminal.withProgress(what, async (detail) => {
    detail('reading the package lists');
    const updated = await aptGet(['update']);
    const known = [];
    for (const name of ifKnown) if (await isKnown(name)) known.push(name);
    const wanted = [...packages, ...known];
    if (wanted.length === 0) return undefined;
    const installed = await aptGet(['install', '--yes', '--no-install-recommends', ...wanted], (line) => {
      const step = /^(?:Get:\d+ \S+ \S+ \S+ (?<got>\S+)|Setting up (?<set>\S+))/.exec(line)?.groups;
      if (step) detail(step['got'] ? `downloading ${step['got']}` : `setting up ${step['set']}`);
    });
    if (installed.code === 0) return undefined;
    const errors = `${updated.code === 0 ? '' : updated.stderr}${installed.stderr}`.trim();
    return `${what} failed, fix the problem that apt-get reports and start again:\n${errors.split('\n').slice(-8).join('\n')}`;
  });
}

async function aptGet(args: readonly string[], onLine?: (line: string) => void) {
  const options = { env: environment, ...(onLine && { onLine }) };
  return await tryCommand('apt-get', ['-o', `DPkg::Lock::Timeout=${lockTimeoutSeconds}`, '-q', ...args], options);
}

/** Whether a package can be installed. apt-cache also lists names that only occur in the dependencies of other packages. */
export async function isKnown(name: string): Promise<boolean> {
  const { code, stdout } = await tryCommand('apt-cache', ['policy', name], { env: environment });
  return code === 0 && /Candidate: (?!\(none\))/.test(stdout);
}
