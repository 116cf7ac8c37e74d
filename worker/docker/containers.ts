import type Docker from 'dockerode';
import { EngineError, calling, engineError, isEngineError } from './engine-error.ts';
import { dataFolderLabels } from './data-folder-identity.ts';
import type { DataFolderIdentity } from './data-folder-identity.ts';
import { backendLabel, nodeLabel } from './labels.ts';

/** What the worker decides about a container; the rest is the same for all of them and stands in this file. */
export interface ContainerSpec {
  readonly backend: string;
  readonly image: string;
  readonly address: string;
  readonly env: Readonly<Record<string, string>>;
  readonly labels: Readonly<Record<string, string>>;
  readonly memoryBytes?: number;
  readonly cpu?: { readonly periodMicroseconds: number; readonly quotaMicroseconds: number };
  readonly pidsLimit: number;
  /** Capabilities that it keeps; all others are dropped. */
  readonly capabilities: readonly string[];
  readonly runtime?: string;
  /** A folder of this machine that it sees as `/data`. */
  readonly mountFolder?: string;
  /** A folder of this machine that it sees as `/.berth`, read-only, whose `init` is its first process. */
  readonly leaseFolder?: string;
}

/** `created`: never started. `running`: its process lives (paused counts). `exited`: it lived, and its exit code is known. */
type ContainerPhase = 'created' | 'running' | 'exited';

export interface ContainerState {
  readonly phase: ContainerPhase;
  readonly exitCode: number;
  /** When its process ended, by the clock of the engine's machine. Absent while it runs, and if it never did. */
  readonly endedAt?: Date;
  readonly outOfMemory: boolean;
  /** Of its first process, on the engine's machine. 0 when it does not run. */
  readonly pid: number;
  readonly address: string | undefined;
}

export interface ListedContainer {
  readonly id: string;
  readonly backend: string;
  readonly phase: ContainerPhase;
}

export type StopSignal = 'SIGTERM' | 'SIGKILL';

export interface Containers {
  /** Makes a container, in place of one that was left over for the same backend. Throws `no-image`. */
  create(spec: ContainerSpec): Promise<string>;
  /** Throws `no-network`, `address-taken`, `adjusted`, or `refused` with the reason why its process did not start. */
  start(id: string): Promise<void>;
  /** Does nothing if the container does not run. */
  signal(id: string, signal: StopSignal): Promise<void>;
  inspect(id: string): Promise<ContainerState | undefined>;
  /** All containers of this node, running or not. */
  list(): Promise<ListedContainer[]>;
  /** By force, with the volumes its image declared. Does nothing if it has gone. */
  remove(id: string): Promise<void>;
  /** CPU time used so far. Takes a second on 20.10: for machines whose cgroup files cannot be read. */
  cpuNanoseconds(id: string): Promise<number>;
}

/** Enough for any server, and bounded, so that one backend cannot use up the machine's descriptors. */
const maxOpenFiles = 65_536;

/** What the engine keeps of a container's output: enough to follow it, and bounded, so that disks do not fill. */
const logLimits = { 'max-size': '10m', 'max-file': '2' };

interface ContainersOptions {
  readonly node: string;
  readonly network: string;
  readonly containerName: (backend: string) => string;
  readonly init: boolean;
  readonly dataFolder?: DataFolderIdentity | undefined;
}

/** Where a container sees its lease folder. */
const leaseTarget = '/.berth';

export class DockerContainers implements Containers {
  readonly #docker: Docker;
  #limitsOpenFiles = true;
  readonly #about: ContainersOptions;

  constructor(docker: Docker, about: ContainersOptions) {
    this.#docker = docker;
    this.#about = about;
  }

  async create(spec: ContainerSpec): Promise<string> {
    const options = await this.#createOptions(spec);
    try {
      return (await this.#docker.createContainer(options)).id;
    } catch (error) {
      if (!isEngineError(engineError(error), 'name-taken')) throw engineError(error);
    }
    await this.remove(this.#about.containerName(spec.backend));
    return (await calling(() => this.#docker.createContainer(options))).id;
  }

  async start(id: string): Promise<void> {
    try {
      await this.#docker.getContainer(id).start();
    } catch (error) {
      const known = engineError(error);
      if (!/setting rlimit/i.test(known.message)) throw known;
      // An engine whose own limit is lower cannot raise it, and its containers inherit it.
      this.#limitsOpenFiles = false;
      throw new EngineError('adjusted', known.message, { cause: error });
    }
  }

  async signal(id: string, signal: StopSignal): Promise<void> {
    try {
      await this.#docker.getContainer(id).kill({ signal });
    } catch (error) {
      const known = engineError(error);
      if (known.code === 'no-container' || /is not running/i.test(known.message)) return;
      throw known;
    }
  }

  async inspect(id: string): Promise<ContainerState | undefined> {
    try {
      const { State, NetworkSettings } = await this.#docker.getContainer(id).inspect();
      return {
        phase: phaseOf(State.Status),
        exitCode: State.ExitCode,
        ...(phaseOf(State.Status) === 'exited' && { endedAt: new Date(State.FinishedAt) }),
        outOfMemory: State.OOMKilled,
        pid: State.Pid,
        // The top-level address is filled on the default bridge only, and newer engines have dropped it.
        address: NetworkSettings.Networks[this.#about.network]?.IPAddress || undefined,
      };
    } catch (error) {
      const known = engineError(error);
      if (known.code === 'no-container') return undefined;
      throw known;
    }
  }

  async list(): Promise<ListedContainer[]> {
    const filters = { label: [`${nodeLabel}=${this.#about.node}`, backendLabel] };
    const found = await calling(() => this.#docker.listContainers({ all: true, filters }));
    return found.map((container) => ({
      id: container.Id,
      backend: container.Labels[backendLabel] ?? '',
      phase: phaseOf(container.State),
    }));
  }

  async remove(id: string): Promise<void> {
    try {
      await this.#docker.getContainer(id).remove({ force: true, v: true });
    } catch (error) {
      const known = engineError(error);
      if (known.code === 'no-container' || /removal of container .* is already in progress/i.test(known.message))
        return;
      throw known;
    }
  }

  async cpuNanoseconds(id: string): Promise<number> {
    const stats = await calling(() => this.#docker.getContainer(id).stats({ stream: false }));
    return stats.cpu_stats.cpu_usage.total_usage;
  }

  async #createOptions(spec: ContainerSpec): Promise<Docker.ContainerCreateOptions> {
    const { node, network, dataFolder } = this.#about;
    return {
      name: this.#about.containerName(spec.backend),
      ...(spec.leaseFolder !== undefined && { Entrypoint: await this.#underOwnInit(spec.image) }),
      Image: spec.image,
      Env: Object.entries(spec.env).map(([name, value]) => `${name}=${value}`),
      Labels: { ...spec.labels, ...dataFolderLabels(dataFolder), [nodeLabel]: node, [backendLabel]: spec.backend },
      // An image's own health check would run in every container for nobody.
      Healthcheck: { Test: ['NONE'] },
      HostConfig: this.#hostConfig(spec),
      NetworkingConfig: { EndpointsConfig: { [network]: { IPAMConfig: { IPv4Address: spec.address } } } },
    };
  }

  /** What a container is started with so that the init of the lease folder runs what its image says. */
  async #underOwnInit(image: string): Promise<string[]> {
    const { Config } = await calling(() => this.#docker.getImage(image).inspect());
    const command = [Config.Entrypoint ?? [], Config.Cmd ?? []].flat();
    if (command.length === 0) throw new EngineError('refused', 'No command specified');
    return [`${leaseTarget}/init`, ...command];
  }

  #hostConfig(spec: ContainerSpec): Docker.HostConfig {
    return {
      NetworkMode: this.#about.network,
      // Reaps zombies, and makes SIGTERM end a process that did not ask for it.
      ...(this.#about.init && spec.leaseFolder === undefined && { Init: true }),
      CapDrop: ['ALL'],
      CapAdd: [...spec.capabilities],
      SecurityOpt: ['no-new-privileges'],
      PidsLimit: spec.pidsLimit,
      // The same value: memory and no swap.
      ...(spec.memoryBytes !== undefined && { Memory: spec.memoryBytes, MemorySwap: spec.memoryBytes }),
      ...(spec.cpu && { CpuPeriod: spec.cpu.periodMicroseconds, CpuQuota: spec.cpu.quotaMicroseconds }),
      ...(this.#limitsOpenFiles && { Ulimits: [{ Name: 'nofile', Soft: maxOpenFiles, Hard: maxOpenFiles }] }),
      LogConfig: { Type: 'json-file', Config: logLimits },
      ...(spec.runtime !== undefined && { Runtime: spec.runtime }),
      Mounts: mountsOf(spec),
    };
  }
}

function mountsOf({ mountFolder, leaseFolder }: ContainerSpec): Docker.MountConfig {
  return [
    ...(mountFolder === undefined ? [] : [{ Type: 'bind' as const, Source: mountFolder, Target: '/data' }]),
    ...(leaseFolder === undefined
      ? []
      : [{ Type: 'bind' as const, Source: leaseFolder, Target: leaseTarget, ReadOnly: true }]),
  ];
}

function phaseOf(status: string): ContainerPhase {
  if (status === 'created') return 'created';
  return status === 'running' || status === 'paused' || status === 'restarting' ? 'running' : 'exited';
}
