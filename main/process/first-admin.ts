/** The first administrator: from the configuration, or created by a user with a one-time set-up code that the start writes. */
import { readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { password as passwordRule } from '../../contract/people.ts';
import { ConfigError } from '../../core/config/settings.ts';
import { writeDurably } from '../../core/files/durable.ts';
import type { PasswordHashes } from '../../core/secret/password-hash.ts';
import type { Store } from '../../core/store/store.ts';
import { addSetupCode, ensureAdministrator, finishSetup, hasAdministrator, newSetupCode } from '../../model/setup.ts';
import { userId, users } from '../../model/user.ts';
import { textOf } from './data-folder.ts';

export interface FirstAdminOptions {
  readonly store: Store;
  readonly passwords: PasswordHashes;
  /** The data folder. */
  readonly folder: string;
  /** The account that the administrator becomes owner of. */
  readonly account: string;
  readonly email: string | undefined;
  readonly passwordFile: string | undefined;
}

/** A set-up code that can still be used. */
export interface SetupCode {
  /** A file that contains only the code, and that only its owner can read. */
  readonly file: string;
  readonly code: string;
}

/**
 * Creates the configured administrator; a user who exists becomes an administrator again. As long as there is no administrator,
 * returns the set-up code. Throws `ConfigError` if the password cannot be read or is too weak.
 */
export async function ensureFirstAdmin(options: FirstAdminOptions): Promise<SetupCode | undefined> {
  const { store, folder, account, email } = options;
  const file = join(folder, 'setup-code');
  await finishSetup(store);
  if (email !== undefined) await ensureConfigured(options, email);
  if (await hasAdministrator(store)) {
    await rm(file, { force: true });
    return undefined;
  }
  const kept = await textOf(file);
  const code = kept ?? newSetupCode();
  if (kept === undefined) await writeDurably(file, code);
  await addSetupCode(store, code, account);
  return { file, code };
}

async function ensureConfigured({ store, account, passwords, passwordFile }: FirstAdminOptions, email: string) {
  const known = await store.get(users, userId(email));
  if (known?.isAdmin) return;
  // A user who exists keeps the password, which may have been changed since the file was written.
  const passwordHash = known?.passwordHash ? undefined : await passwords.hash(await readPassword(passwordFile));
  await ensureAdministrator(store, { email, passwordHash }, account);
}

async function readPassword(file: string | undefined): Promise<string> {
  const variable = 'BERTH_ADMIN_PASSWORD_FILE';
  if (file === undefined) throw new ConfigError(`${variable}: Needed for BERTH_ADMIN_EMAIL`);
  const text = await readFile(file, 'utf8').then(
    (content) => content.replace(/\r?\n$/, ''),
    (error: NodeJS.ErrnoException) => {
      throw new ConfigError(`${variable} (${file}): It cannot be read (${error.code})`);
    },
  );
  const { success, error } = passwordRule.safeParse(text);
  if (success) return text;
  throw new ConfigError(`${variable} (${file}): ${error.issues[0]?.message ?? 'Not a password'}`);
}
