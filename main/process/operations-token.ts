import { readFile } from 'node:fs/promises';
import { ConfigError } from '../../core/config/settings.ts';

/** Reads the token for operations, where the configuration names a file with one. Throws `ConfigError` if that cannot serve. */
export async function readOperationsToken(file: string | undefined): Promise<string | undefined> {
  if (file === undefined) return undefined;
  const token = await readFile(file, 'utf8').then(
    (text) => text.trim(),
    (error: NodeJS.ErrnoException) => {
      throw new ConfigError(`BERTH_OPERATIONS_TOKEN_FILE (${file}): It cannot be read (${error.code})`);
    },
  );
  if (/^[\w.~+/=-]{32,}$/.test(token)) return token;
  throw new ConfigError(`BERTH_OPERATIONS_TOKEN_FILE (${file}): It must hold 32 letters, digits or -._~+/= or more`);
}
