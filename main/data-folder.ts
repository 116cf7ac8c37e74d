/** The data folder: made at the first start, with what must stay the same from then on. */
import { randomBytes } from 'node:crypto';
import { link, mkdir, open, readFile, rename, rm } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { ConfigError } from '../core/config/settings.ts';
import { PlatformSecret } from '../core/secret/platform-secret.ts';

export interface DataFolder {
  /** Its absolute path. */
  readonly path: string;
  readonly secret: PlatformSecret;
  /** The name of this node, where the configuration gives none. */
  readonly nodeName: string;
}

/**
 * Opens the data folder, making what is missing. Only its owner can read it. Throws `ConfigError` if the secret file that the
 * configuration names cannot serve.
 */
export async function openDataFolder(folder: string, secretFile: string | undefined): Promise<DataFolder> {
  const path = resolve(folder);
  await mkdir(path, { recursive: true, mode: 0o700 });
  const secret =
    secretFile === undefined
      ? await keptText(join(path, 'secret'), () => randomBytes(32).toString('base64url'))
      : await givenSecret(secretFile);
  const nodeName = await keptText(join(path, 'node'), () => `node-${randomBytes(4).toString('hex')}`);
  return { path, secret: new PlatformSecret(Buffer.from(secret, 'base64url')), nodeName };
}

async function givenSecret(file: string): Promise<string> {
  const secret = await textOf(file);
  if (secret !== undefined && /^[A-Za-z0-9_-]{43,}$/.test(secret)) return secret;
  const problem = secret === undefined ? 'There is no such file' : 'It must hold 32 random bytes or more, in base64url';
  throw new ConfigError(`BERTH_SECRET_FILE (${file}): ${problem}`);
}

/** The text of a file that is written once. Two processes that make it at the same moment agree on one text. */
async function keptText(path: string, make: () => string): Promise<string> {
  const present = await textOf(path);
  if (present !== undefined) return present;
  const draft = `${path}.${randomBytes(4).toString('hex')}`;
  try {
    await writeDraft(draft, make());
    await link(draft, path);
  } catch (error) {
    if (!isCode(error, 'EEXIST')) throw error;
  } finally {
    await rm(draft, { force: true });
  }
  const made = await textOf(path);
  if (made === undefined) throw new Error(`Cannot keep ${path}`);
  return made;
}

/** Writes a file that only its owner can read: whole and on the disk, or not at all. */
export async function writeDurably(path: string, text: string): Promise<void> {
  const draft = `${path}.${randomBytes(4).toString('hex')}`;
  try {
    await writeDraft(draft, text);
    await rename(draft, path);
  } finally {
    await rm(draft, { force: true });
  }
}

async function writeDraft(path: string, text: string): Promise<void> {
  await using file = await open(path, 'wx', 0o600);
  await file.writeFile(text);
  await file.sync();
}

async function textOf(path: string): Promise<string | undefined> {
  try {
    return (await readFile(path, 'utf8')).trim();
  } catch (error) {
    if (isCode(error, 'ENOENT')) return undefined;
    throw error;
  }
}

function isCode(error: unknown, code: string): boolean {
  return error instanceof Error && 'code' in error && error.code === code;
}
