/** A real MongoDB server for tests: the `mongod` on the PATH, or one that set-up downloads into a cache folder. */
import { rename } from 'node:fs/promises';
import { join } from 'node:path';
import { findProgram, runCommand } from '../../../setup/command.ts';
import type { Terminal } from '../../../setup/terminal.ts';
import { cached, cachedPath, pathExists } from '../packages/cached.ts';

/** Of the series in docker-compose.yml; exists for Debian 12, Ubuntu 22.04 and Ubuntu 24.04. */
const version = '8.0.17';

const folder = `mongod-${version}`;

/** Tests wait for a silent network this long, and then use another server. */
const defaultSilenceMs = 10_000;

/** The path of the program, if it is on the PATH or has been downloaded. */
export async function mongodProgram(): Promise<string | undefined> {
  const installed = await findProgram('mongod');
  if (installed !== undefined) return installed;
  const program = join(cachedPath(folder), 'mongod');
  return (await pathExists(program)) ? program : undefined;
}

/** Downloads the program. Returns why it cannot be used, or `undefined`. */
export async function downloadMongod(terminal: Terminal, maxSilenceMs = defaultSilenceMs): Promise<string | undefined> {
  try {
    await terminal.withProgress(`Downloading MongoDB ${version}`, async (detail) => {
      await cached(folder, async (making) => {
        // Imported here, because each test worker imports this module, and the library costs 80 ms of CPU time.
        const { fetchMongod } = await import('./mongod-fetch.ts');
        const program = await fetchMongod({ version, folder: making, maxSilenceMs, detail });
        // Fails if the system lacks a library or the processor an instruction that the program needs.
        await runCommand(program, ['--version']);
        await rename(program, join(making, 'mongod'));
      });
    });
    return undefined;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}
