/** A browser of the Chromium family. */
import { isKnown } from '../../../setup/apt.ts';
import { findProgram } from '../../../setup/command.ts';
import type { AptPackages } from './apt-packages.ts';

/**
 * Chromium without windows: the same page rendering for a quarter of the CPU time, because the rest of the browser does not start.
 * Playwright runs the same program by default.
 */
const headlessShell = 'chromium-headless-shell';

/** Names of the program in Debian, in Ubuntu, and of Chrome, which hosted CI machines have. */
export const chromiumPrograms = [
  headlessShell,
  'chromium',
  'chromium-browser',
  'google-chrome-stable',
  'google-chrome',
];

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
  if ((await findProgram(headlessShell)) !== undefined) return undefined;
  if ((await chromiumProgram()) === undefined) {
    return await packages.install('Installing Chromium', ['chromium'], [headlessShell]);
  }
  if (await isKnown(headlessShell)) await packages.install('Installing Chromium without windows', [headlessShell]);
  return undefined;
}
