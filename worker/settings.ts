/** How long closing waits for what is being written and for calls to the engine; what is left, the next worker mends. */
export const closeWithinMs = 5_000;

/** What is configured about the worker of one node. */
export interface WorkerSettings {
  /** A name that stays the same across restarts: by it the node knows its containers again. */
  readonly node: string;
  /** Which machine this is: by it a worker knows that another one has taken its node's name. Default: nobody looks. */
  readonly machine?: string;
  readonly cluster: string;
  /** `host:port` from which the engine pulls images. */
  readonly registryHost: string;
  /** What this node keeps is on the disk of this folder. */
  readonly dataFolder: string;
  /** From `scheduled` until `ready`; the time spent pulling the image does not count. */
  readonly startTimeoutSeconds: number;
  readonly pullTimeoutSeconds: number;
  /** Whether images are fetched before somebody asks for them. */
  readonly prefetchEnabled: boolean;
  /** What stays free on the engine's disk when images are fetched ahead. Default: a tenth of the disk, at most 10 GiB. */
  readonly prefetchReserveBytes?: number;
  /** After this long a soft stop becomes hard. */
  readonly stopGraceSeconds: number;
  /** For backends that ask for no limit. Default: none. */
  readonly defaultMemoryBytes?: number;
  /** Processes and threads in one container. */
  readonly pidsLimit: number;
  /** Linux capabilities that containers keep; all others are dropped. */
  readonly capabilities: readonly string[];
  /** The engine's runtime (`runsc`). Default: the engine's own choice. */
  readonly runtime?: string;
  /** Where the folders of mounts are made. Without it a backend that wants a mount does not start. */
  readonly mountFolder?: string;
  /** Where the leases of keyed backends are written. Programs in it must be allowed to run. */
  readonly leaseFolder: string;
  /** Containers that are made and started at a time: CPU is the limit, more of them only wait for each other. */
  readonly maxConcurrentStarts: number;
  /** How many backends the node has room for. Default: no limit. */
  readonly maxBackends?: number;
  /** What the memory limits of all backends may add up to. Default: twice the memory of the engine's machine. */
  readonly offeredMemoryBytes?: number;
  readonly keptLogs: KeptLogSettings;
  /** Where other machines reach this node. Default: not at all, only processes of this machine do. */
  readonly gateway?: GatewaySettings;
}

/** What is kept of the logs of backends that have ended. */
export interface KeptLogSettings {
  readonly folder: string;
  /** Of one log: its last bytes, with the time of each line. */
  readonly maxBytes: number;
  readonly seconds: number;
  /** Of all logs, on the disk: the oldest go first. 0: no limit. */
  readonly totalBytes: number;
}

export interface GatewaySettings {
  /** The address on which it listens. */
  readonly host: string;
  /** 0 takes a free port. */
  readonly port: number;
  /** The name or address by which other machines reach it. */
  readonly advertisedHost: string;
}
