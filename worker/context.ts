import type { Bus } from '../core/bus/bus.ts';
import type { Clock } from '../core/clock/clock.ts';
import type { DiskReserve } from '../core/files/disk-reserve.ts';
import type { Log } from '../core/log/log.ts';
import type { Metrics } from '../core/metrics/metrics.ts';
import type { Queue } from '../core/queue/queue.ts';
import type { PlatformSecret } from '../core/secret/platform-secret.ts';
import type { Store } from '../core/store/store.ts';
import type { BackendWatch } from '../model/backend-watch.ts';
import type { Backend } from '../model/backend.ts';
import type { ContainerEnv } from '../model/container-env.ts';
import type { RegistryGrants } from '../model/registry-grant.ts';
import type { Connections } from './idle/connections.ts';
import type { ContainerLeases } from './leases/container-lease.ts';
import type { Engine } from './docker/engine.ts';
import type { Firewall } from './firewall/firewall.ts';
import type { WorkerMetrics } from './metrics.ts';
import type { KeptLogs } from './logs/kept-logs.ts';
import type { LiveStats } from './usage/live-stats.ts';
import type { Pulls } from './images/pulls.ts';
import type { NodeDrain } from './node/drain.ts';
import type { EngineHealth } from './node/engine-health.ts';
import type { PortHelper } from './readiness/port-helper.ts';
import type { Run } from './lifecycle/run.ts';
import type { WorkerSettings } from './settings.ts';
import type { Semaphore } from '../core/async/semaphore.ts';

/** The dependencies of the worker. */
export interface WorkerDeps {
  readonly store: Store;
  readonly queue: Queue;
  readonly bus: Bus;
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: Metrics;
  readonly grants: RegistryGrants;
  /** Authenticates other processes of the platform at the gateway. */
  readonly secret: PlatformSecret;
  readonly engine: Engine;
  /** For the disk with the data folder. Default: none. */
  readonly reserve?: DiskReserve;
  readonly settings: WorkerSettings;
  /** Ends the opening of the worker early, while it waits for a heartbeat of another machine. */
  readonly signal?: AbortSignal;
}

/** The state and dependencies that the parts of the worker share. */
export interface WorkerContext extends Omit<WorkerDeps, 'metrics' | 'queue' | 'secret' | 'reserve' | 'signal'> {
  /** The store's time, which dates documents. */
  readonly clock: Clock;
  /** The clock of this machine and its Docker Engine. It shows when the process was frozen. */
  readonly machineClock: Clock;
  /** The backends of this node, by ID, from their claim until they are finalized. */
  readonly runs: Map<string, Run>;
  /** Backends that are being claimed, by ID. */
  readonly claiming: Map<string, Backend>;
  readonly starts: Semaphore;
  readonly pulls: Pulls;
  readonly engineHealth: EngineHealth;
  readonly drain: NodeDrain;
  readonly connections: Connections;
  /** Follows backends of any node. */
  readonly watch: BackendWatch;
  readonly keptLogs: KeptLogs;
  /** Absent if no other process can assign a key. */
  readonly containerLeases?: ContainerLeases;
  /** Absent if this node cannot run it inside of containers. */
  readonly portHelper?: PortHelper;
  readonly firewall: Firewall;
  readonly liveStats: LiveStats;
  readonly metrics: WorkerMetrics;
  /** Decrypts variables of backends. */
  readonly containerEnv: ContainerEnv;
  /** Aborts when the worker closes. Containers continue. */
  readonly closing: AbortSignal;
}
