/** The file with the log-ins of the command line. Only its owner can read it, and each change replaces the whole file. */
import { randomBytes } from 'node:crypto';
import { chmod, mkdir, open, readFile, rename, rm, stat } from 'node:fs/promises';
import { homedir } from 'node:os';
import { dirname, join } from 'node:path';
import { CliError } from '../errors.ts';

/** A log-in at one platform. */
export interface Login {
  readonly token: string;
  /** The default account of commands. */
  readonly account?: string;
  /** The user who is logged in; absent for an access token. */
  readonly user?: string;
  /** The ID with which the log-in is ended; absent for an access token. */
  readonly session?: string;
}

export interface Logins {
  /** The default platform of commands. */
  readonly current?: string;
  /** By the address of the platform. */
  readonly hosts: Readonly<Record<string, Login>>;
}

export type Environment = Readonly<Record<string, string | undefined>>;

/** The path of the file: in `$XDG_CONFIG_HOME`, or in `~/.config`. */
export function loginsPath(env: Environment): string {
  // The specification of XDG: a relative path must be ignored.
  const base = env['XDG_CONFIG_HOME']?.startsWith('/')
    ? env['XDG_CONFIG_HOME']
    : join(env['HOME'] || homedir(), '.config');
  return join(base, 'berth', 'config.json');
}

/** Reads the log-ins; there are none if the file does not exist. Removes the access of other users to the file. */
export async function readLogins(path: string): Promise<Logins> {
  let text: string;
  try {
    text = await readFile(path, 'utf8');
    const { mode } = await stat(path);
    if ((mode & 0o077) !== 0) await chmod(path, 0o600);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return { hosts: {} };
    throw new CliError('Config', `Cannot read ${path}: ${messageOf(error)}`, { cause: error });
  }
  const logins = parsed(text);
  if (logins) return logins;
  throw new CliError('Config', `${path} is not a configuration of berth`, {
    hint: 'Correct the file, or delete it and log in again',
  });
}

/** Replaces the log-ins atomically: a crash leaves either the old or the new file. */
export async function writeLogins(path: string, logins: Logins): Promise<void> {
  const temporary = `${path}.${randomBytes(6).toString('hex')}`;
  try {
    await mkdir(dirname(path), { recursive: true, mode: 0o700 });
    const file = await open(temporary, 'wx', 0o600);
    try {
      await file.writeFile(`${JSON.stringify(logins, undefined, 2)}\n`);
      await file.sync();
    } finally {
      await file.close();
    }
    await rename(temporary, path);
  } catch (error) {
    await rm(temporary, { force: true });
    throw new CliError('Config', `Cannot write ${path}: ${messageOf(error)}`, { cause: error });
  }
}

function parsed(text: string): Logins | undefined {
  try {
    const { current, hosts } = JSON.parse(text) as { current?: unknown; hosts?: unknown };
    if (typeof hosts !== 'object' || hosts === null || Array.isArray(hosts)) return undefined;
    if (current !== undefined && typeof current !== 'string') return undefined;
    const all = Object.entries(hosts as Record<string, unknown>).map(
      ([host, login]) => [host, parsedLogin(login)] as const,
    );
    if (all.some(([, login]) => login === undefined)) return undefined;
    return { ...(current !== undefined && { current }), hosts: Object.fromEntries(all) as Record<string, Login> };
  } catch {
    return undefined;
  }
}

function parsedLogin(value: unknown): Login | undefined {
  if (typeof value !== 'object' || value === null) return undefined;
  const { token, account, user, session } = value as Record<string, unknown>;
  if (typeof token !== 'string') return undefined;
  return {
    token,
    ...(typeof account === 'string' && { account }),
    ...(typeof user === 'string' && { user }),
    ...(typeof session === 'string' && { session }),
  };
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
