/** Schemathesis, which tests an API by its OpenAPI document, in a cached Python environment. */
import { join } from 'node:path';
import { findProgram, runCommand } from '../../../setup/command.ts';
import { messageOf } from '../message-of.ts';
import type { AptPackages } from './apt-packages.ts';
import { cached, cachedPath, pathExists } from './cached.ts';

const version = '4.32.5';

const folder = `schemathesis-${version}`;

/** It has about 30 dependencies. */
const installTimeoutMs = 300_000;

/** The Python that has schemathesis, if it is installed. */
export async function schemathesisPython(): Promise<string | undefined> {
  const python = join(cachedPath(folder), 'bin/python');
  return (await pathExists(python)) ? python : undefined;
}

/** Installs schemathesis. Returns why it cannot be used, or `undefined`. */
export async function installSchemathesis(packages: AptPackages): Promise<string | undefined> {
  if (await schemathesisPython()) return undefined;
  const problem = await installPython(packages);
  if (problem !== undefined) return problem;
  try {
    await packages.terminal.withProgress('Installing schemathesis', async () => {
      await cached(folder, async (making) => {
        const signal = AbortSignal.timeout(installTimeoutMs);
        await runCommand('python3', ['-m', 'venv', making], { signal });
        const install = ['-m', 'pip', 'install', '--quiet', '--disable-pip-version-check', `schemathesis==${version}`];
        await runCommand(join(making, 'bin/python'), install, { signal });
      });
    });
    return undefined;
  } catch (error) {
    return `it cannot be installed from PyPI: ${messageOf(error)}`;
  }
}

/** Installs Python if it is missing or cannot create environments: Debian has that part in a separate package. */
async function installPython(packages: AptPackages): Promise<string | undefined> {
  const hasVenv = async () =>
    (await findProgram('python3')) !== undefined &&
    (await runCommand('python3', ['-c', 'import ensurepip, venv']).then(
      () => true,
      () => false,
    ));
  return (await hasVenv()) ? undefined : await packages.install('Installing Python', ['python3', 'python3-venv']);
}
