/** Installs the packages that tests need, with apt-get as root, after the user at the terminal has agreed. */
import { createInterface } from 'node:readline/promises';
import { installWithApt } from '../../../setup/apt.ts';
import { findProgram } from '../../../setup/command.ts';
import type { Terminal } from '../../../setup/terminal.ts';

/** Whether missing packages are installed. */
export type InstallPolicy = 'ask' | 'yes' | 'no';

export class AptPackages {
  readonly terminal: Terminal;
  readonly policy: InstallPolicy;
  /** The user's answer; the question is asked once. */
  #agreed: Promise<boolean> | undefined;

  constructor(terminal: Terminal, policy: InstallPolicy = 'yes') {
    this.terminal = terminal;
    this.policy = policy;
  }

  /** Installs packages, and the packages of `ifKnown` that this release has. Returns a problem, or undefined. */
  async install(
    what: string,
    packages: readonly string[],
    ifKnown: readonly string[] = [],
  ): Promise<string | undefined> {
    const missing = `these packages are missing: ${[...packages, ...ifKnown].join(', ')}`;
    if (process.getuid?.() !== 0 || (await findProgram('apt-get')) === undefined) return missing;
    if (!(await this.#mayInstall([...packages, ...ifKnown]))) return `${missing}, and you declined to install them`;
    return await installWithApt(this.terminal, what, packages, ifKnown);
  }

  async #mayInstall(packages: readonly string[]): Promise<boolean> {
    if (this.policy !== 'ask') return this.policy === 'yes';
    this.#agreed ??= ask(
      `Tests need packages that are missing: ${packages.join(', ')}. ` +
        'Install these and all other missing packages with apt-get as root? [Y/n] ',
    );
    return await this.#agreed;
  }
}

async function ask(question: string): Promise<boolean> {
  const asking = createInterface({ input: process.stdin, output: process.stderr });
  try {
    return /^(?:y|yes|)$/i.test((await asking.question(question)).trim());
  } finally {
    asking.close();
  }
}
