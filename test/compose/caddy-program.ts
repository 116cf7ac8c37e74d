/** Finds Caddy on the PATH, or unpacks the package of Debian's unstable suite without installing it. */
import { join } from 'node:path';
import { findProgram } from '../../setup/command.ts';
import { messageOf } from '../kit/message-of.ts';
import { cached, pathExists } from '../kit/packages/cached.ts';
import { debianKeyring, notDebian, unpackUnstable } from '../kit/packages/unstable-packages.ts';

/** The path of Caddy, or why it is missing. */
export async function caddyProgram(): Promise<string | { readonly missing: string }> {
  const installed = await findProgram('caddy');
  if (installed !== undefined) return installed;
  const problem = await caddyProblem();
  if (problem !== undefined) return { missing: problem };
  try {
    const folder = await cached('caddy-unstable', async (making) => await unpackUnstable(['caddy'], making, () => {}));
    return join(folder, 'usr/bin/caddy');
  } catch (error) {
    return { missing: `caddy cannot be unpacked: ${messageOf(error)}` };
  }
}

/** Returns why Caddy cannot be installed on this machine, or undefined. Downloads nothing. */
export async function caddyProblem(): Promise<string | undefined> {
  if ((await findProgram('caddy')) !== undefined || (await pathExists(debianKeyring))) return undefined;
  return `there is no caddy: ${notDebian}`;
}
