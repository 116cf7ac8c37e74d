/** The program that the worker runs inside of containers: it lists listening sockets, and forwards ports to programs on localhost. */
import { join } from 'node:path';
import type { WorkerDeps } from '../context.ts';
import type { Containers } from '../docker/containers.ts';
import { portHelperTarget } from '../docker/containers.ts';
import { installProgram } from '../install-program.ts';
import { parseListeners } from './listeners.ts';
import type { Listener, PortForward } from './listeners.ts';

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
  const folder = join(settings.dataFolder, 'programs');
  try {
    const file = await installProgram('port-helper', folder);
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
  { host, port, target, targetPort }: PortForward & { readonly host: string },
): Promise<void> {
  const command = [portHelperTarget, 'forward', host, String(port), target, String(targetPort)];
  await containers.executeInBackground(id, { command, user, folder: '/' });
}
