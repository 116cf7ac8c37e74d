import type Docker from 'dockerode';
import { storageOptions, storageRefused } from './disk-limit.ts';
import type { DiskLimit, DiskLimitKind } from './disk-limit.ts';
import { EngineError, callEngine, callEngineUnless, engineError } from './engine-error.ts';
import { execute, executeInBackground } from './executions.ts';
import type { Execution, ExecutionResult } from './executions.ts';
import { backendLabel, dataFolderLabels, nodeLabel } from './labels.ts';
import type { DataFolderIdentity } from './labels.ts';

/** The part of a container's configuration that the worker decides; the rest is the same for all containers. */
export interface ContainerSpec {
  readonly backend: string;
  readonly image: string;
  readonly address: string;
  readonly env: Readonly<Record<string, string>>;
  readonly labels: Readonly<Record<string, string>>;
  readonly memoryBytes?: number;
  readonly cpu?: { readonly periodMicroseconds: number; readonly quotaMicroseconds: number };
  readonly pidsLimit: number;
  /** The limit of its own file system, if the storage driver can limit it. */
  readonly disk?: DiskLimit;
  /** Linux capabilities that it keeps; all others are dropped. */
  readonly capabilities: readonly string[];
  /** `user:group` instead of the user of the image. */
  readonly user?: string;
  /** Its root file system cannot be written. */
  readonly readOnlyRoot?: boolean;
  /** Folders that are in memory, and the numeric user and group that own them. */
  readonly memoryFolders?: { readonly paths: readonly string[]; readonly owner?: { uid: number; gid: number } };
  readonly runtime?: string;
  /** The servers with which the engine resolves names for it, from the container's network. Default: the machine's DNS servers. */
  readonly dnsServers?: readonly string[];
  /** The folder of this machine that it sees as `/data`. */
  readonly mountFolder?: string;
  /** The folder of this machine that it sees as `/.berth`, read-only; the `init` in it is its first process. */
  readonly leaseFolder?: string;
  /** The file of this machine that it sees as `/.berth/port-helper`, if the lease folder does not have it. */
  readonly portHelper?: string;
  /** The command of the image, which that init runs. */
  readonly command?: readonly string[];
}

/** `created`: never started. `running`: its process exists (or is paused). `exited`: its process has exited. */
type ContainerPhase = 'created' | 'running' | 'exited';

export interface ContainerState {
  readonly phase: ContainerPhase;
  readonly exitCode: number;
  /** When its process exited, by the clock of the engine's machine. Absent otherwise. */
  readonly endedAt?: Date;
  readonly outOfMemory: boolean;
  /** Of its first process, on the engine's machine. 0 when it does not run. */
  readonly pid: number;
  /** Also before its start and after its exit. */
  readonly address: string | undefined;
  /** Whether the storage driver limits its own file system. */
  readonly hasDiskLimit: boolean;
}

export interface ListedContainer {
  readonly id: string;
  readonly backend: string;
  readonly phase: ContainerPhase;
}

/** `stop`: the STOPSIGNAL of the image, or SIGTERM. */
export type StopSignal = 'stop' | 'SIGKILL';

/**
 * How much of its memory a container may use as `/dev/shm`, which counts as its memory. The engine's default are 64 MiB, with which
 * Chromium and PostgreSQL fail.
 */
const sharedMemoryShare = 0.5;

/** How much of a container's output the engine keeps: enough to follow it, and bounded, so that it does not fill the disk. */
const logLimits = { 'max-size': '10m', 'max-file': '2' };

interface ContainersOptions {
  readonly node: string;
  readonly network: string;
  readonly containerName: (backend: string) => string;
  readonly init: boolean;
  readonly diskLimit: DiskLimitKind;
  readonly openFilesLimit: number;
  readonly dataFolder?: DataFolderIdentity | undefined;
}

/** How a folder in memory is mounted. Programs in it may run, as in any folder of an image. */
const memoryFolder = 'rw,exec,nosuid,nodev,mode=1777';

const defaultStopSignal = 'SIGTERM';

/** Where a container sees its lease folder. */
const leaseTarget = '/.berth';

/** Where a container sees the port helper. */
export const portHelperTarget = `${leaseTarget}/port-helper`;

/** The containers of this node's backends. */
export class Containers {
  readonly #docker: Docker;
  readonly #options: ContainersOptions;
  #limitsOpenFiles = true;
  #diskLimit: DiskLimitKind;

  constructor(docker: Docker, options: ContainersOptions) {
    this.#docker = docker;
    this.#options = options;
    this.#diskLimit = options.diskLimit;
  }

  /** Creates a container, and replaces a leftover one of the same backend. Throws `no-image` and `adjusted`. */
  async create(spec: ContainerSpec): Promise<string> {
    const options = this.#createOptions(spec);
    try {
      const created = await callEngineUnless('name-taken', () => this.#docker.createContainer(options));
      if (created) return created.id;
      await this.remove(this.#options.containerName(spec.backend));
      return (await callEngine(() => this.#docker.createContainer(options))).id;
    } catch (error) {
      const known = engineError(error);
      if (!options.HostConfig?.StorageOpt || !storageRefused.test(known.message)) throw known;
      this.#diskLimit = 'none';
      throw new EngineError('adjusted', known.message, { cause: error });
    }
  }

  /** Throws `no-network`, `address-taken`, `adjusted`, or `refused` with the reason for which its process did not start. */
  async start(id: string): Promise<void> {
    try {
      await this.#docker.getContainer(id).start();
    } catch (error) {
      const known = engineError(error);
      if (!/setting rlimit/i.test(known.message)) throw known;
      // An engine whose own limit is lower cannot raise it; its containers inherit the lower limit.
      this.#limitsOpenFiles = false;
      throw new EngineError('adjusted', known.message, { cause: error });
    }
  }

  /** Does nothing if the container does not run. */
  async signal(id: string, signal: StopSignal): Promise<void> {
    const container = this.#docker.getContainer(id);
    const send = async () => await container.kill({ signal: await this.#signalOf(id, signal) });
    await callEngineUnless('no-container', send, /is not running/i);
  }

  async #signalOf(id: string, signal: StopSignal): Promise<string> {
    if (signal === 'SIGKILL') return signal;
    const { Config } = await this.#docker.getContainer(id).inspect();
    return (Config as { StopSignal?: string }).StopSignal || defaultStopSignal;
  }

  async inspect(id: string): Promise<ContainerState | undefined> {
    const found = await callEngineUnless('no-container', () => this.#docker.getContainer(id).inspect());
    if (!found) return undefined;
    const { State, NetworkSettings, HostConfig } = found;
    const network = NetworkSettings.Networks[this.#options.network];
    return {
      phase: phaseOf(State.Status),
      exitCode: State.ExitCode,
      ...(phaseOf(State.Status) === 'exited' && { endedAt: new Date(State.FinishedAt) }),
      outOfMemory: State.OOMKilled,
      pid: State.Pid,
      // The top-level address is set on the default bridge only, and newer engines do not have it.
      address: network?.IPAddress || network?.IPAMConfig?.IPv4Address || undefined,
      hasDiskLimit: HostConfig.StorageOpt?.['size'] !== undefined,
    };
  }

  /** All containers of this node, running or not. */
  async list(): Promise<ListedContainer[]> {
    const filters = { label: [`${nodeLabel}=${this.#options.node}`, backendLabel] };
    const found = await callEngine(() => this.#docker.listContainers({ all: true, filters }));
    return found.map((container) => ({
      id: container.Id,
      backend: container.Labels[backendLabel] ?? '',
      phase: phaseOf(container.State),
    }));
  }

  /** Removes a container by force, with the volumes that its image declares. Does nothing if it does not exist. */
  async remove(id: string): Promise<void> {
    const remove = () => this.#docker.getContainer(id).remove({ force: true, v: true });
    await callEngineUnless('no-container', remove, /removal of container .* is already in progress/i);
  }

  /** See `execute`. */
  async execute(id: string, execution: Execution, signal: AbortSignal): Promise<ExecutionResult> {
    return await execute(this.#docker, id, { execution, signal });
  }

  /** See `executeInBackground`. */
  async executeInBackground(id: string, execution: Execution): Promise<void> {
    await executeInBackground(this.#docker, id, execution);
  }

  /** CPU time used so far. Takes a second on 20.10: only for machines whose cgroup files cannot be read. */
  async cpuNanoseconds(id: string): Promise<number> {
    const stats = await callEngine(() => this.#docker.getContainer(id).stats({ stream: false }));
    return stats.cpu_stats.cpu_usage.total_usage;
  }

  /** The size of the files that it has written to its own file system; 0 if it does not exist. Takes longer for more files. */
  async writtenBytes(id: string): Promise<number> {
    // The types lack the option.
    const options: object = { size: true };
    const found = await callEngineUnless('no-container', () => this.#docker.getContainer(id).inspect(options));
    return (found as { SizeRw?: number } | undefined)?.SizeRw ?? 0;
  }

  #createOptions(spec: ContainerSpec): Docker.ContainerCreateOptions {
    const { node, network, dataFolder } = this.#options;
    return {
      name: this.#options.containerName(spec.backend),
      ...(spec.leaseFolder !== undefined && { Entrypoint: underOwnInit(spec.command ?? []) }),
      ...(spec.user !== undefined && { User: spec.user }),
      Image: spec.image,
      Env: Object.entries(spec.env).map(([name, value]) => `${name}=${value}`),
      Labels: { ...spec.labels, ...dataFolderLabels(dataFolder), [nodeLabel]: node, [backendLabel]: spec.backend },
      // The platform does not use the health check of an image, which would run in every container.
      Healthcheck: { Test: ['NONE'] },
      HostConfig: this.#hostConfig(spec),
      NetworkingConfig: { EndpointsConfig: { [network]: { IPAMConfig: { IPv4Address: spec.address } } } },
    };
  }

  #hostConfig(spec: ContainerSpec): Docker.HostConfig {
    const storage = storageOptions(this.#diskLimit, spec.disk);
    const { openFilesLimit } = this.#options;
    return {
      NetworkMode: this.#options.network,
      // Reaps zombies, and lets SIGTERM end a process that does not handle it.
      ...(this.#options.init && spec.leaseFolder === undefined && { Init: true }),
      CapDrop: ['ALL'],
      CapAdd: [...spec.capabilities],
      ...(spec.readOnlyRoot && { ReadonlyRootfs: true }),
      ...(spec.memoryFolders && { Tmpfs: memoryFoldersOf(spec.memoryFolders) }),
      SecurityOpt: ['no-new-privileges'],
      PidsLimit: spec.pidsLimit,
      ...(storage && { StorageOpt: storage }),
      // The same value for both: no swap.
      ...(spec.memoryBytes !== undefined && { Memory: spec.memoryBytes, MemorySwap: spec.memoryBytes }),
      ...(spec.memoryBytes !== undefined && { ShmSize: Math.round(spec.memoryBytes * sharedMemoryShare) }),
      ...(spec.cpu && { CpuPeriod: spec.cpu.periodMicroseconds, CpuQuota: spec.cpu.quotaMicroseconds }),
      ...(this.#limitsOpenFiles && { Ulimits: [{ Name: 'nofile', Soft: openFilesLimit, Hard: openFilesLimit }] }),
      LogConfig: { Type: 'json-file', Config: logLimits },
      ...(spec.runtime !== undefined && { Runtime: spec.runtime }),
      ...(spec.dnsServers && { Dns: [...spec.dnsServers] }),
      Mounts: mountsOf(spec),
    };
  }
}

/** The entrypoint that makes the init of the lease folder run the image's command. */
function underOwnInit(command: readonly string[]): string[] {
  if (command.length === 0) throw new EngineError('refused', 'No command specified');
  return [`${leaseTarget}/init`, ...command];
}

/** If the image has a folder there, runc keeps its mode, which may not let others write. So its owner is set, too. */
function memoryFoldersOf({ paths, owner }: NonNullable<ContainerSpec['memoryFolders']>): Record<string, string> {
  const options = owner ? `${memoryFolder},uid=${owner.uid},gid=${owner.gid}` : memoryFolder;
  return Object.fromEntries(paths.map((path) => [path, options]));
}

function mountsOf({ mountFolder, leaseFolder, portHelper }: ContainerSpec): Docker.MountConfig {
  return [
    ...(mountFolder === undefined ? [] : [{ Type: 'bind' as const, Source: mountFolder, Target: '/data' }]),
    ...(leaseFolder === undefined
      ? []
      : [{ Type: 'bind' as const, Source: leaseFolder, Target: leaseTarget, ReadOnly: true }]),
    ...(leaseFolder !== undefined || portHelper === undefined
      ? []
      : [{ Type: 'bind' as const, Source: portHelper, Target: portHelperTarget, ReadOnly: true }]),
  ];
}

function phaseOf(status: string): ContainerPhase {
  if (status === 'created') return 'created';
  return status === 'running' || status === 'paused' || status === 'restarting' ? 'running' : 'exited';
}
