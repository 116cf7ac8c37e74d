/** The Docker Engine of this node, as far as the worker needs it. Nobody outside this folder knows dockerode. */
import { Agent } from 'node:http';
import Docker from 'dockerode';
import type { Log } from '../../core/log/log.ts';
import { DockerContainers } from './containers.ts';
import type { Containers } from './containers.ts';
import { EngineError, engineError } from './engine-error.ts';
import { enginePathOf } from './engine-path.ts';
import { DockerEvents } from './events.ts';
import type { Events } from './events.ts';
import type { DataFolderIdentity } from './data-folder-identity.ts';
import { imageFoldersIn } from './image-folders.ts';
import type { ImageFoldersInfo } from './image-folders.ts';
import { DockerImages } from './images.ts';
import type { Images } from './images.ts';
import { removeLeftovers } from './leftovers.ts';
import { DockerLogs } from './logs.ts';
import type { Logs } from './logs.ts';
import { DockerStats } from './stats.ts';
import type { Stats } from './stats.ts';
import { DockerNetwork } from './network.ts';
import type { Network } from './network.ts';

export interface Engine extends AsyncDisposable {
  readonly version: string;
  /** The memory of its machine; 0 if it does not tell. */
  readonly memoryBytes: number;
  readonly containers: Containers;
  /** Under which name the container of a backend is found, here alone. */
  readonly containerName: (backend: string) => string;
  readonly images: Images;
  /** Folders that grow when an image is fetched, as far as is known. */
  readonly imageFolders: readonly string[];
  /** Under which path the engine sees a folder of this process. Throws `refused` if it does not see it. */
  pathOf(folder: string): Promise<string>;
  /** The one network that the backends of this node are on. */
  readonly network: Network;
  readonly events: Events;
  /** What containers write. */
  readonly logs: Logs;
  /** What containers use. */
  readonly stats: Stats;
  /**
   * Asks what an engine that has locked itself up does not answer. Throws `unavailable` if nobody answers, and the signal's
   * reason when it aborts.
   */
  ping(signal: AbortSignal): Promise<void>;
}

export interface EngineOptions {
  /** The socket on which the engine listens, `unix:///path`. Default: `unix:///var/run/docker.sock`. */
  readonly host?: string;
  /** Names the network, and marks containers as this node's. */
  readonly node: string;
  /**
   * Makes a text of a backend's ID that says nothing of it, always the same one, for the container's name: by Docker's DNS every
   * container learns the names of its neighbours.
   */
  readonly disguise: (backend: string) => string;
  /** Default: none, and nothing is known again once the node has another name. */
  readonly dataFolder?: DataFolderIdentity | undefined;
  readonly log: Log;
  /** How long the engine may be silent while it owes an answer. Default: two minutes. */
  readonly silenceMs?: number;
}

const defaultHost = 'unix:///var/run/docker.sock';

/**
 * A start on a disk that is overwhelmed takes tens of seconds. What takes longer is lost: without a limit, a call to an engine
 * that has locked itself up would hold up the end of its backend, and the end of the worker, for ever.
 */
const defaultSilenceMs = 120_000;

/** What nobody has begun to use yet answers within milliseconds, or there is something wrong with it. */
const firstAnswersMs = 10_000;

/** 20.10, the oldest engine that Debian's and Ubuntu's supported releases carry. */
const oldestApi = { major: 1, minor: 41 };

/** Connects to the engine, and throws an `EngineError` that says why if it is not one on which backends can run. */
export async function openEngine(options: EngineOptions): Promise<Engine> {
  const host = options.host ?? defaultHost;
  using opening = new DisposableStack();
  const agent = new Agent({ keepAlive: true });
  opening.defer(() => agent.destroy());
  // The types leave the agent out; dockerode hands it to each request.
  const connection: Docker.DockerOptions & { agent: Agent } = { ...connectionTo(host), agent };
  const docker = new Docker({ ...connection, timeout: options.silenceMs ?? defaultSilenceMs });
  // What is told as it happens, events and pulls, may be silent for long; it ends by its signal.
  const streaming = new Docker(connection);
  const network = new DockerNetwork(docker, options);
  const { version, info } = await getToKnow(new Docker({ ...connection, timeout: firstAnswersMs }), host, network.name);
  const { dataFolder } = options;
  if (dataFolder) await removeLeftovers(docker, { ...options, dataFolder });
  await network.ensure();
  const owned = opening.move();
  const containerName = (backend: string) => `berth-${options.disguise(backend)}`;
  return {
    version: version.Version,
    memoryBytes: info.MemTotal ?? 0,
    containerName,
    containers: new DockerContainers(docker, {
      node: options.node,
      network: network.name,
      containerName,
      init: hasInit(version),
      dataFolder,
    }),
    images: new DockerImages(docker, streaming),
    pathOf: async (folder) => await enginePathOf(docker, folder),
    imageFolders: imageFoldersIn(info),
    network,
    events: new DockerEvents(streaming, options.node, options.log),
    logs: new DockerLogs(streaming, containerName),
    stats: new DockerStats(streaming, containerName),
    ping: async (signal) => await ping(docker, network.name, signal),
    [Symbol.asyncDispose]: async () => owned.dispose(),
  };
}

/** What an engine says of itself. Throws an `EngineError` if no backend can be run on it, or not now. */
async function getToKnow(
  docker: Docker,
  host: string,
  network: string,
): Promise<{ version: Docker.DockerVersion; info: EngineInfo }> {
  const failing = (message: string) => (error: unknown) => {
    throw new EngineError('unavailable', message, { cause: engineError(error) });
  };
  const noAnswer = `No Docker Engine answers at ${host}, start one or say where it listens`;
  const version = await docker.version().catch(failing(noAnswer));
  refuseOld(version);
  const info = (await docker.info().catch(failing(noAnswer))) as EngineInfo;
  refuseUnreachable(info);
  await ping(docker, network).catch(failing(`The Docker Engine at ${host} has locked itself up, restart it`));
  return { version, info };
}

/**
 * Networks, because of the way in which engine 20.10 locks itself up: a container that leaves a network and the end-point of
 * another one that is forgotten wait for each other's lock, and from then on whoever starts or removes a container waits, too.
 * `/_ping` goes on answering.
 */
async function ping(docker: Docker, network: string, signal?: AbortSignal): Promise<void> {
  try {
    await docker.listNetworks({ filters: { name: [network] }, ...(signal && { abortSignal: signal }) });
  } catch (error) {
    signal?.throwIfAborted();
    const known = engineError(error);
    // One that refuses is awake.
    if (known.code === 'unavailable') throw known;
  }
}

interface EngineInfo extends ImageFoldersInfo {
  readonly MemTotal?: number;
  readonly OperatingSystem?: string;
  readonly SecurityOptions?: readonly string[] | null;
}

function connectionTo(host: string): Docker.DockerOptions {
  // All are named: dockerode fills in what is left out from the environment.
  return { socketPath: host.replace(/^unix:\/\//, ''), host: undefined, protocol: 'http' };
}

function refuseOld(version: Docker.DockerVersion): void {
  const [major = 0, minor = 0] = version.ApiVersion.split('.').map(Number);
  if (major > oldestApi.major || (major === oldestApi.major && minor >= oldestApi.minor)) return;
  throw new EngineError(
    'refused',
    `Docker Engine ${version.Version} is too old, use 20.10 or newer (API ${oldestApi.major}.${oldestApi.minor})`,
  );
}

function refuseUnreachable(info: EngineInfo): void {
  if (info.OperatingSystem?.includes('Docker Desktop')) {
    throw new EngineError(
      'refused',
      'Docker Desktop keeps containers in a virtual machine where their addresses cannot be reached, use a Docker Engine on Linux',
    );
  }
  if (info.SecurityOptions?.some((option) => option.includes('name=rootless'))) {
    throw new EngineError(
      'refused',
      'A rootless Docker Engine keeps container addresses where this machine cannot reach them, use one that runs as root',
    );
  }
}

/** Some packagings leave `docker-init` out; a container that wants it would not start there. */
function hasInit(version: Docker.DockerVersion): boolean {
  const init = version.Components?.find((component) => component.Name === 'docker-init');
  return init !== undefined && init.Version !== '' && init.Version !== 'N/A';
}
