/** Translates folders of this process into the engine's paths, which may differ. */
import { readFile } from 'node:fs/promises';
import { join, relative, sep } from 'node:path';
import type Docker from 'dockerode';
import { EngineError, callEngineUnless } from './engine-error.ts';

/** Docker binds files into every container from a folder that is named for the container's ID. */
const ownFiles = /\/containers\/([0-9a-f]{64})\/(?:hostname|hosts|resolv\.conf) /;

/**
 * The engine's path of a folder of this process: the same path, unless this process is in a container of that engine. Then the
 * folder must be in a volume or bind mount of the container; throws `refused` if it is not.
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

/** A volume or bind mount of a container. */
interface Mount {
  readonly Source: string;
  readonly Destination: string;
}

/** The source path of a folder in its innermost mount; `undefined` if it is in no mount. */
export function pathThrough(mounts: readonly Mount[], folder: string): string | undefined {
  const around = mounts.filter(({ Destination }) => isWithin(Destination, folder));
  const [innermost] = around.toSorted((one, other) => other.Destination.length - one.Destination.length);
  return innermost && join(innermost.Source, relative(innermost.Destination, folder));
}

function isWithin(outer: string, folder: string): boolean {
  const path = relative(outer, folder);
  return path !== '..' && !path.startsWith(`..${sep}`);
}

/** The mounts of a container; `undefined` if it belongs to another engine. */
async function mountsOf(docker: Docker, id: string): Promise<readonly Mount[] | undefined> {
  return (await callEngineUnless('no-container', () => docker.getContainer(id).inspect()))?.Mounts;
}
