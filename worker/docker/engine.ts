/** The Docker Engine of this node, as far as the worker needs it. Only this folder imports dockerode. */
import type { Agent } from 'node:http';
import Docker from 'dockerode';
import type { Log } from '../../core/log/log.ts';
import { newEngineAgent } from './agent.ts';
import { Containers } from './containers.ts';
import { diskLimitKind } from './disk-limit.ts';
import type { StorageInfo } from './disk-limit.ts';
import { EngineError, engineError } from './engine-error.ts';
import { enginePathOf } from './engine-path.ts';
import { followEvents } from './events.ts';
import type { EventListener } from './events.ts';
import { Images, imageFoldersIn } from './images.ts';
import type { ImageFoldersInfo } from './images.ts';
import type { DataFolderIdentity } from './labels.ts';
import { removeLeftovers } from './leftovers.ts';
import type { LogEntry } from './log-frames.ts';
import { readLog } from './logs.ts';
import type { LogOptions } from './logs.ts';
import { Network } from './network.ts';
import { followStats } from './stats.ts';
import type { ContainerUsage } from './stats.ts';

export interface Engine extends AsyncDisposable {
  readonly version: string;
  /** The memory of its machine; 0 if unknown. */
  readonly memoryBytes: number;
  /** The processors of its machine; 0 if unknown. */
  readonly cpus: number;
  /** The architecture of its machine, as images name it: `amd64`. */
  readonly architecture: string;
  readonly containers: Containers;
  /** The name of a backend's container, unique to this node. */
  readonly containerName: (backend: string) => string;
  readonly images: Images;
  /** The folders that grow when an image is pulled, as far as known. */
  readonly imageFolders: readonly string[];
  /** The engine's path of a folder of this process. Throws `refused` if the engine cannot see it. */
  pathOf(folder: string): Promise<string>;
  /** The network of this node's backends. */
  readonly network: Network;
  /** See `followEvents`. */
  followEvents(listener: EventListener, signal: AbortSignal): Promise<void>;
  /** See `readLog`. */
  readLog(backend: string, options: LogOptions, signal: AbortSignal): AsyncGenerator<LogEntry[], void, void>;
  /** See `followStats`. */
  followStats(backend: string, signal: AbortSignal): Promise<AsyncGenerator<ContainerUsage, void, void>>;
  /** Sends a request that a deadlocked engine does not answer. Throws `unavailable`, and the signal's reason when it aborts. */
  ping(signal: AbortSignal): Promise<void>;
}

export interface EngineOptions {
  /** The socket on which the engine listens, `unix:///path`. Default: `unix:///var/run/docker.sock`. */
  readonly host?: string;
  /** Determines the name of the network and the label of the node's containers. */
  readonly node: string;
  /**
   * Derives the container's name from a backend's ID without revealing the ID: Docker's DNS shows every container the names of the
   * others.
   */
  readonly nameSuffix: (backend: string) => string;
  /** Default: none; then leftovers of a node that was renamed are not found. */
  readonly dataFolder?: DataFolderIdentity | undefined;
  /** Whether no other node uses the data folder. Default: false. */
  readonly ownsFolder?: boolean | undefined;
  /** The limit of open files for each process in a container. */
  readonly openFilesLimit: number;
  readonly log: Log;
  /** The longest pause while an answer of the engine is due. Default: two minutes. */
  readonly silenceMs?: number;
}

const defaultHost = 'unix:///var/run/docker.sock';

/**
 * A start on an overloaded disk takes tens of seconds. Without a limit, a call to a deadlocked engine would block the end of its
 * backend, and the end of the worker, forever.
 */
const defaultSilenceMs = 120_000;

/** At the start of the worker, a healthy engine answers within milliseconds. */
const firstAnswersMs = 10_000;

/** 20.10, the oldest engine in supported releases of Debian and Ubuntu. */
const oldestApi = { major: 1, minor: 41 };

/** Connects to the engine. Throws an `EngineError` with the reason if backends cannot run on it. */
export async function openEngine(options: EngineOptions): Promise<Engine> {
  const host = options.host ?? defaultHost;
  using opening = new DisposableStack();
  const agent = newEngineAgent();
  opening.defer(() => agent.destroy());
  // The types lack the agent; dockerode passes it to each request.
  const connection: Docker.DockerOptions & { agent: Agent } = { ...connectionTo(host), agent };
  const docker = new Docker({ ...connection, timeout: options.silenceMs ?? defaultSilenceMs });
  // For events, logs, stats and pulls, which may pause for long; their signals end them.
  const streaming = new Docker(connection);
  const network = new Network(docker, options);
  const { version, info } = await inspectEngine(
    new Docker({ ...connection, timeout: firstAnswersMs }),
    host,
    network.name,
  );
  const { dataFolder } = options;
  if (dataFolder) await removeLeftovers(docker, { ...options, dataFolder });
  await network.ensure();
  const owned = opening.move();
  const containerName = (backend: string) => `berth-${options.nameSuffix(backend)}`;
  return {
    version: version.Version,
    memoryBytes: info.MemTotal ?? 0,
    cpus: info.NCPU ?? 0,
    architecture: version.Arch,
    containerName,
    containers: new Containers(docker, {
      node: options.node,
      network: network.name,
      containerName,
      init: hasInit(version),
      diskLimit: diskLimitKind(info),
      openFilesLimit: options.openFilesLimit,
      dataFolder,
    }),
    images: new Images(docker, streaming),
    pathOf: async (folder) => await enginePathOf(docker, folder),
    imageFolders: imageFoldersIn(info),
    network,
    followEvents: async (listener, signal) => await followEvents(streaming, { ...options, signal }, listener),
    readLog: (backend, options, signal) => readLog(streaming, containerName(backend), options, signal),
    followStats: async (backend, signal) => await followStats(streaming, containerName(backend), signal),
    ping: async (signal) => await ping(docker, network.name, signal),
    [Symbol.asyncDispose]: async () => owned.dispose(),
  };
}

/** Reads the engine's version and description. Throws an `EngineError` if backends cannot run on it, or not now. */
async function inspectEngine(
  docker: Docker,
  host: string,
  network: string,
): Promise<{ version: Docker.DockerVersion; info: EngineInfo }> {
  const failing = (message: string) => (error: unknown) => {
    throw new EngineError('unavailable', message, { cause: engineError(error) });
  };
  const noAnswer = `No Docker Engine answers at ${host}: start it, or set DOCKER_HOST to its socket`;
  const version = await docker.version().catch(failing(noAnswer));
  refuseOld(version);
  const info = (await docker.info().catch(failing(noAnswer))) as EngineInfo;
  refuseUnreachable(info);
  await ping(docker, network).catch(failing(`The Docker Engine at ${host} is deadlocked, restart it`));
  return { version, info };
}

/**
 * Lists networks, because of a deadlock in engine 20.10: a container that leaves a network and the removal of another container's
 * endpoint wait for each other's lock, and from then on every start and removal of a container waits, too. `/_ping` still answers.
 */
async function ping(docker: Docker, network: string, signal?: AbortSignal): Promise<void> {
  try {
    await docker.listNetworks({ filters: { name: [network] }, ...(signal && { abortSignal: signal }) });
  } catch (error) {
    signal?.throwIfAborted();
    const known = engineError(error);
    // An engine that refuses the request works.
    if (known.code === 'unavailable') throw known;
  }
}

interface EngineInfo extends ImageFoldersInfo, StorageInfo {
  readonly MemTotal?: number;
  readonly NCPU?: number;
  readonly OperatingSystem?: string;
  readonly SecurityOptions?: readonly string[] | null;
}

function connectionTo(host: string): Docker.DockerOptions {
  // All options are set: dockerode reads missing ones from the environment.
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

/** Whether the engine has `docker-init`, which some packages lack; a container that requests it would not start there. */
function hasInit(version: Docker.DockerVersion): boolean {
  const init = version.Components?.find((component) => component.Name === 'docker-init');
  return init !== undefined && init.Version !== '' && init.Version !== 'N/A';
}
