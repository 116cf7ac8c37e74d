import type { Bus } from '../core/bus/bus.ts';
import type { Clock } from '../core/clock/clock.ts';
import type { Log } from '../core/log/log.ts';
import type { Metrics } from '../core/metrics/metrics.ts';
import type { Queue } from '../core/queue/queue.ts';
import type { Store } from '../core/store/store.ts';
import type { BackendWatch } from '../model/backend-watch.ts';
import type { SpawnTimes } from './spawn-times.ts';

/** Where clients find what this room talks about. No URL ends with a slash. */
export interface PublicUrls {
  readonly api: string;
  readonly proxy: string;
  /** Host and port, as in an image's name. */
  readonly registryHost: string;
}

/** Defaults and bounds of spawns. */
export interface SpawnRules {
  readonly defaultMaxIdleSeconds: number;
  readonly maxIdleSecondsLimit: number;
  /** Absent: sessions may live for ever. */
  readonly defaultLifetimeSeconds?: number;
  readonly lifetimeSecondsLimit: number;
  readonly mountsEnabled: boolean;
  readonly defaultCluster: string;
  /** How long a backend may wait for a node. */
  readonly schedulingTimeoutSeconds: number;
}

/** What the API room is handed. */
export interface ApiDependencies {
  readonly store: Store;
  readonly queue: Queue;
  readonly bus: Bus;
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: Metrics;
  readonly urls: PublicUrls;
  readonly rules: SpawnRules;
  /** The secret token that belongs to a connection token. */
  readonly secretFor: (connectionToken: string) => string;
}

/** What its handlers share. */
export interface Api extends ApiDependencies {
  readonly watch: BackendWatch;
  readonly spawnTimes: SpawnTimes;
  /** Aborts when the room closes: streams end then. */
  readonly closing: AbortSignal;
}
