import type { FirewallMode } from './firewall/firewall.ts';

/** The settings of one node's worker. */
export interface WorkerSettings {
  /** Unchanged across restarts: it identifies the containers of this node. */
  readonly node: string;
  /** Identifies this machine, to detect a worker on another machine with the same node name. Default: no detection. */
  readonly machine?: string;
  readonly cluster: string;
  /** `host:port` from which the engine pulls images. */
  readonly registryHost: string;
  /** The folder with the data of this node. */
  readonly dataFolder: string;
  /** From `scheduled` until `ready`, without the time to pull the image. */
  readonly startTimeoutSeconds: number;
  readonly pullTimeoutSeconds: number;
  /** Whether images are pulled before the first backend needs them. */
  readonly prefetchEnabled: boolean;
  /** Space that stays free on the engine's disk when images are prefetched. Default: a tenth of the disk, at most 10 GiB. */
  readonly prefetchReserveBytes?: number;
  /** After this time a soft stop becomes hard. */
  readonly stopGraceSeconds: number;
  /** For backends without a limit of their own. Default: no limit. */
  readonly defaultMemoryBytes?: number;
  /** Of one processor, for backends without a limit of their own. Default: no limit. */
  readonly defaultCpuPercent?: number;
  /** The data that a container may write to its own file system. Default: no limit. */
  readonly diskBytesLimit?: number;
  /** Processes and threads in one container. */
  readonly pidsLimit: number;
  /** Linux capabilities that containers keep; all others are dropped. */
  readonly capabilities: readonly string[];
  /** Whether rules keep backends from this machine's services, and limit their egress. Default: `off`. */
  readonly firewall?: FirewallMode;
  /** The DNS servers of backends. Default: those of the machine. */
  readonly dnsServers?: readonly string[];
  /** The engine's runtime (`runsc`). Default: the engine's own default. */
  readonly runtime?: string;
  /** The folder in which mounts are created. Without it, a backend with a mount does not start. */
  readonly mountFolder?: string;
  /** The folder of the leases that containers enforce. Its file system must allow programs to run. */
  readonly leaseFolder: string;
  /** Containers that are created and started at a time. CPU is the bottleneck: more of them only wait for each other. */
  readonly maxConcurrentStarts: number;
  /** The node's capacity in backends. Default: no limit. */
  readonly maxBackends?: number;
  /** The maximum sum of the memory limits of all backends. Default: twice the memory of the engine's machine. */
  readonly offeredMemoryBytes?: number;
  readonly keptLogs: KeptLogSettings;
  /** For access from other machines. Default: only processes of this machine reach the node. */
  readonly gateway?: GatewaySettings;
}

/** How much is kept of the logs of backends that have ended. */
export interface KeptLogSettings {
  readonly folder: string;
  /** Of one log: its last bytes, with the time of each line. */
  readonly maxBytes: number;
  readonly seconds: number;
  /** Of all logs, on the disk: the oldest are removed first. 0: no limit. */
  readonly totalBytes: number;
}

export interface GatewaySettings {
  /** The address on which the gateway listens. */
  readonly host: string;
  /** 0 selects a free port. */
  readonly port: number;
  /** The name or address by which other machines reach the gateway. */
  readonly advertisedHost: string;
}
