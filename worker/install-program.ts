import { chmod, copyFile, mkdir, rename } from 'node:fs/promises';
import { join } from 'node:path';
import { temporaryPath } from '../core/files/durable.ts';
import { EngineError } from './docker/engine-error.ts';

/** The endings of the builds for each processor, by Node's name for it. */
const builds: Readonly<Record<string, string>> = { x64: 'amd64', arm64: 'arm64' };

/**
 * Copies a program that runs in containers into a folder of this node, and returns its path. Throws an `EngineError` if there is no build
 * for this processor.
 */
export async function installProgram(name: 'init' | 'port-helper', folder: string): Promise<string> {
  const build = builds[process.arch];
  if (build === undefined) {
    throw new EngineError(
      'refused',
      `There is no ${name} for processors of the kind "${process.arch}", use x64 or arm64`,
    );
  }
  const file = join(folder, name);
  const draft = temporaryPath(file);
  await mkdir(folder, { recursive: true, mode: 0o700 });
  await copyFile(join(import.meta.dirname, name, `${name}-${build}`), draft);
  // Images may run as any user.
  await chmod(draft, 0o755);
  await rename(draft, file);
  return file;
}
