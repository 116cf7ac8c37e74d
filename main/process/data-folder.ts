/** The data folder. The first start creates it, with a secret and an ID that never change. */
import { randomBytes } from 'node:crypto';
import { link, mkdir, readFile, rm } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { ConfigError } from '../../core/config/settings.ts';
import { ifPresent, systemCode } from '../../core/files/system-code.ts';
import { temporaryPath, writeSynced } from '../../core/files/durable.ts';
import { PlatformSecret } from '../../core/secret/platform-secret.ts';

export interface DataFolder {
  /** Its absolute path. */
  readonly path: string;
  readonly secret: PlatformSecret;
  /** Unique among data folders. */
  readonly id: string;
}

/**
 * Opens the data folder and creates missing files. Only its owner can read it. Throws `ConfigError` if the configured
 * secret file is missing or invalid.
 */
export async function openDataFolder(folder: string, secretFile: string | undefined): Promise<DataFolder> {
  const path = resolve(folder);
  await mkdir(path, { recursive: true, mode: 0o700 });
  const secret =
    secretFile === undefined
      ? await keptText(join(path, 'secret'), () => randomBytes(32).toString('base64url'))
      : await givenSecret(secretFile);
  const id = await keptText(join(path, 'node'), () => `node-${randomBytes(4).toString('hex')}`);
  return { path, secret: new PlatformSecret(Buffer.from(secret, 'base64url')), id };
}

async function givenSecret(file: string): Promise<string> {
  const secret = await textOf(file);
  if (secret !== undefined && /^[A-Za-z0-9_-]{43,}$/.test(secret)) return secret;
  const problem = secret === undefined ? 'There is no such file' : 'It must hold 32 random bytes or more, in base64url';
  throw new ConfigError(`BERTH_SECRET_FILE (${file}): ${problem}`);
}

/** The text of a file that is written once. Two processes that create the file at the same time get the same text. */
async function keptText(path: string, make: () => string): Promise<string> {
  const present = await textOf(path);
  if (present !== undefined) return present;
  const draft = temporaryPath(path);
  try {
    await writeSynced(draft, make());
    await link(draft, path);
  } catch (error) {
    if (systemCode(error) !== 'EEXIST') throw error;
  } finally {
    await rm(draft, { force: true });
  }
  const made = await textOf(path);
  if (made === undefined) throw new Error(`Cannot keep ${path}`);
  return made;
}

/** The content of a small file, trimmed; `undefined` if there is no such file. */
export async function textOf(path: string): Promise<string | undefined> {
  return (await ifPresent(readFile(path, 'utf8')))?.trim();
}
