/** A browser of the Chromium family, for tests of what browsers show. */
import { findProgram } from '../../../setup/command.ts';
import type { AptPackages } from './apt-packages.ts';

/** Names of the program: Debian's, Ubuntu's, and those of Chrome, which hosted CI machines have. */
export const chromiumPrograms = ['chromium', 'chromium-browser', 'google-chrome-stable', 'google-chrome'];

/** The path of the browser, if it is installed. */
export async function chromiumProgram(): Promise<string | undefined> {
  for (const name of chromiumPrograms) {
    const path = await findProgram(name);
    if (path !== undefined) return path;
  }
  return undefined;
}

/** Installs Chromium. Returns why it cannot be used, or `undefined`. */
export async function installChromium(packages: AptPackages): Promise<string | undefined> {
  if ((await chromiumProgram()) !== undefined) return undefined;
  return await packages.install('Installing Chromium', ['chromium']);
}
