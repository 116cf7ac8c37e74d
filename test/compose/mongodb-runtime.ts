/** The protocol server with a Java runtime that is small enough for an image: 50 MB instead of 300. */
import { createHash } from 'node:crypto';
import { cp, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { findProgram, runCommand } from '../../setup/command.ts';
import { messageOf } from '../kit/message-of.ts';
import { protocolServer } from '../kit/servers/mongodb-install.ts';
import { cached } from '../kit/packages/cached.ts';

const source = fileURLToPath(new URL('Contained.java', import.meta.url));

/** The Java modules that the server and its libraries use. */
const modules =
  'java.base,java.compiler,java.instrument,java.logging,java.management,java.naming,java.sql,jdk.unsupported';

/** Folders with a Java runtime and with the server's classes, or why they cannot be built. */
export async function containedMongo(): Promise<{ runtime: string; classes: string } | { readonly missing: string }> {
  if ((await findProgram('jlink')) === undefined) return { missing: 'jlink is not installed' };
  const server = await protocolServer();
  if ('missing' in server) return server;
  try {
    const version = await runCommand('jlink', ['--version']);
    const runtime = await cached(`java-${nameOf(version, modules)}`, async (making) => {
      // jlink creates the folder itself.
      const flags = ['--no-header-files', '--no-man-pages', '--strip-java-debug-attributes', '--vm', 'server'];
      await runCommand('jlink', ['--add-modules', modules, ...flags, '--output', join(making, 'java')]);
    });
    const classes = await cached(
      `mongodb-contained-${nameOf(server.classes, await readFile(source))}`,
      async (making) => {
        await cp(server.classes, making, { recursive: true });
        await runCommand('javac', ['-d', making, '-cp', `${making}:${join(making, 'lib', '*')}`, source]);
      },
    );
    return { runtime: join(runtime, 'java'), classes };
  } catch (error) {
    return { missing: messageOf(error) };
  }
}

function nameOf(...parts: (string | Uint8Array)[]): string {
  const hash = createHash('sha256');
  for (const part of parts) hash.update(part);
  return hash.digest('hex').slice(0, 12);
}
