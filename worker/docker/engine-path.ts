/** How folders of this process are named for the engine, which may see them under another path. */
import { readFile } from 'node:fs/promises';
import { join, relative, sep } from 'node:path';
import type Docker from 'dockerode';
import { EngineError, engineError } from './engine-error.ts';

/** Every container has files that Docker keeps in a folder named for its ID and binds into it. */
const ownFiles = /\/containers\/([0-9a-f]{64})\/(?:hostname|hosts|resolv\.conf) /;

/**
 * The path under which the engine sees a folder of this process: the same, unless this process is in a container of that engine.
 * Then the folder must be in one of its volumes or bound folders. Throws `refused` where it is not.
 */
export async function enginePathOf(docker: Docker, folder: string): Promise<string> {
  const mountInfo = await readFile('/proc/self/mountinfo', 'utf8').catch(() => '');
  const id = ownFiles.exec(mountInfo)?.[1];
  const mounts = id === undefined ? undefined : await mountsOf(docker, id);
  if (!mounts) return folder;
  const path = pathThrough(mounts, folder);
  if (path !== undefined) return path;
  throw new EngineError(
    'refused',
    `The Docker Engine cannot see ${folder}, which is inside of this container: mount a volume for the data folder`,
  );
}

/** A folder that a container has from elsewhere. */
interface Mount {
  readonly Source: string;
  readonly Destination: string;
}

/** The path behind the innermost mount that a folder is in; `undefined` if it is in none. */
export function pathThrough(mounts: readonly Mount[], folder: string): string | undefined {
  const around = mounts.filter(({ Destination }) => isWithin(Destination, folder));
  const [innermost] = around.toSorted((one, other) => other.Destination.length - one.Destination.length);
  return innermost && join(innermost.Source, relative(innermost.Destination, folder));
}

function isWithin(outer: string, folder: string): boolean {
  const path = relative(outer, folder);
  return path !== '..' && !path.startsWith(`..${sep}`);
}

/** What is mounted in a container, unless the engine does not know it: then it is another engine's. */
async function mountsOf(docker: Docker, id: string): Promise<readonly Mount[] | undefined> {
  try {
    return (await docker.getContainer(id).inspect()).Mounts;
  } catch (error) {
    const known = engineError(error);
    if (known.code === 'no-container') return undefined;
    throw known;
  }
}
