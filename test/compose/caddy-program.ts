/** A Caddy: the one on the PATH, else Debian's, unpacked without being installed. */
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { findProgram, runCommand } from '../../setup/command.ts';
import { cached } from '../kit/cached.ts';

/** Where it is, or why there is none. */
export async function caddyProgram(): Promise<string | { readonly missing: string }> {
  const installed = await findProgram('caddy');
  if (installed !== undefined) return installed;
  if ((await findProgram('apt-get')) === undefined) return { missing: 'caddy is not installed' };
  try {
    const folder = await cached('caddy', async (making) => {
      await runCommand('apt-get', ['-q', '-o', 'APT::Sandbox::User=root', 'download', 'caddy'], { cwd: making });
      const [name = ''] = await readdir(making);
      await runCommand('dpkg', ['-x', join(making, name), making]);
    });
    return join(folder, 'usr/bin/caddy');
  } catch (error) {
    return { missing: `caddy cannot be had: ${error instanceof Error ? error.message : String(error)}` };
  }
}
