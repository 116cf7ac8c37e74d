/** The program that the worker runs inside of containers: it lists listening sockets, and forwards ports to programs on localhost. */
import { chmod, copyFile, mkdir, rename } from 'node:fs/promises';
import { join } from 'node:path';
import { temporaryPath } from '../../core/files/durable.ts';
import type { WorkerDeps } from '../context.ts';
import type { Containers } from '../docker/containers.ts';
import { portHelperTarget } from '../docker/containers.ts';
import { parseListeners } from './listeners.ts';
import type { Listener } from './listeners.ts';

/** The build for each processor, by Node's name for it. */
const builds: Readonly<Record<string, string>> = { x64: 'port-helper-amd64', arm64: 'port-helper-arm64' };

/** `nobody` and `nogroup`: it needs no rights, and must not have those of the container's program. */
const user = '65534:65534';

/** Reading two files takes milliseconds, and starting a program in a container a tenth of a second under load. */
const listMs = 10_000;

/** The port helper of this node. */
export interface PortHelper {
  readonly file: string;
  /** The engine's path of the file. */
  readonly engineFile: string;
}

/**
 * Copies the helper into the data folder, from where it is mounted into containers. Returns `undefined` with a warning if that is
 * impossible here: containers then run without it.
 */
export async function installPortHelper({ settings, engine, log }: WorkerDeps): Promise<PortHelper | undefined> {
  const build = builds[process.arch];
  const folder = join(settings.dataFolder, 'programs');
  const file = join(folder, 'port-helper');
  try {
    if (build === undefined) throw new Error(`There is no port helper for processors of the kind "${process.arch}"`);
    await mkdir(folder, { recursive: true, mode: 0o700 });
    const draft = temporaryPath(file);
    await copyFile(join(import.meta.dirname, '../port-helper', build), draft);
    // Images may run as any user.
    await chmod(draft, 0o755);
    await rename(draft, file);
    return { file, engineFile: join(await engine.pathOf(folder), 'port-helper') };
  } catch (error) {
    log.warn({ err: error }, 'No port helper: applications that listen on localhost only cannot be reached');
    return undefined;
  }
}

/** The sockets that listen in a running container. Throws an `EngineError` if the helper cannot run there. */
export async function listListeners(containers: Containers, id: string, signal: AbortSignal): Promise<Listener[]> {
  const limit = AbortSignal.any([signal, AbortSignal.timeout(listMs)]);
  const { output } = await containers.execute(
    id,
    { command: [portHelperTarget, 'listeners'], user, folder: '/' },
    limit,
  );
  return parseListeners(output);
}

/** Forwards a port of the container's address to an address that only the container reaches, for as long as the container runs. */
export async function forwardPort(
  containers: Containers,
  id: string,
  { host, port, target }: { readonly host: string; readonly port: number; readonly target: string },
): Promise<void> {
  const command = [portHelperTarget, 'forward', host, String(port), target];
  await containers.executeInBackground(id, { command, user, folder: '/' });
}
