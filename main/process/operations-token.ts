import { readFile } from 'node:fs/promises';
import { ConfigError } from '../../core/config/settings.ts';

/** Reads the operations token from the configured file, if any. Throws `ConfigError` if the file is missing or invalid. */
export async function readOperationsToken(file: string | undefined): Promise<string | undefined> {
  if (file === undefined) return undefined;
  const token = await readFile(file, 'utf8').then(
    (text) => text.trim(),
    (error: NodeJS.ErrnoException) => {
      throw new ConfigError(`BERTH_OPERATIONS_TOKEN_FILE (${file}): It cannot be read (${error.code})`);
    },
  );
  if (/^[\w.~+/=-]{32,}$/.test(token)) return token;
  throw new ConfigError(
    `BERTH_OPERATIONS_TOKEN_FILE (${file}): It must contain 32 or more letters, digits or characters of -._~+/=`,
  );
}
