/** Opens a page in the user's browser, if there is a desktop. */
import { spawn } from 'node:child_process';
import type { Environment } from './config/file.ts';

/** Opens an address of `http:` or `https:`. Returns whether a browser was started. */
export async function openInBrowser(url: string, env: Environment): Promise<boolean> {
  const { protocol } = new URL(url);
  if (protocol !== 'http:' && protocol !== 'https:') return false;
  const program = opener(env);
  if (!program) return false;
  const [name, ...args] = program;
  // Without a shell, so that nothing in the address is a command.
  const child = spawn(name, [...args, url], { stdio: 'ignore', detached: true });
  child.unref();
  return await new Promise((resolve) => {
    child.once('spawn', () => resolve(true));
    child.once('error', () => resolve(false));
  });
}

function opener(env: Environment): [string, ...string[]] | undefined {
  if (env['BROWSER']) return [env['BROWSER']];
  if (process.platform === 'darwin') return ['open'];
  if (process.platform === 'win32') return ['rundll32', 'url.dll,FileProtocolHandler'];
  return env['DISPLAY'] || env['WAYLAND_DISPLAY'] ? ['xdg-open'] : undefined;
}
