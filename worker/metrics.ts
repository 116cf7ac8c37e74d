/** What the worker counts. */
import { Counter, Gauge, Histogram } from 'prom-client';
import { backendStatuses } from '../contract/statuses.ts';
import type { BackendStatus, TerminationReason } from '../contract/statuses.ts';
import type { Metrics } from '../core/metrics/metrics.ts';

type SpawnResult = 'ready' | 'failed' | 'stopped';

/**
 * `present`: it was here already. `unneeded`: it has gone, or nothing spawns it any more. `no-space`: the disk is too full for what
 * nobody has asked for yet. `failed`: it was given up.
 */
export type PrefetchResult = 'fetched' | 'present' | 'unneeded' | 'no-space' | 'failed';

/** Disposing them takes them off the metrics, where the next worker of the process puts its own. */
export interface WorkerMetrics extends Disposable {
  spawned(result: SpawnResult, seconds: number): void;
  terminated(reason: TerminationReason | null): void;
  /** An image was to be fetched before somebody asks for it. */
  prefetched(result: PrefetchResult): void;
  dockerFailed(operation: string): void;
}

/** From a warm start (a tenth of a second) to the start-up time-out. */
const spawnBuckets = [0.05, 0.1, 0.15, 0.2, 0.3, 0.5, 1, 2, 5, 10, 30, 60, 300];

const names = {
  spawns: 'berth_spawn_duration_seconds',
  terminations: 'berth_terminations_total',
  prefetches: 'berth_images_fetched_ahead_total',
  dockerErrors: 'berth_docker_errors_total',
  dockerAnswers: 'berth_docker_answers',
  backends: 'berth_backends',
  offeredMemory: 'berth_node_memory_offered_bytes',
  promisedMemory: 'berth_node_memory_promised_bytes',
} as const;

/** What is asked for whenever metrics are read. */
export interface MetricsNow {
  /** The status of each backend on this node. */
  readonly statuses: () => Iterable<BackendStatus>;
  readonly engineAnswers: () => boolean;
  /** In bytes. */
  readonly offeredMemory: () => number;
  readonly promisedMemory: () => number;
}

export function openWorkerMetrics(metrics: Metrics, now: MetricsNow): WorkerMetrics {
  const spawns = new Histogram({
    name: names.spawns,
    help: 'Time from scheduled until ready, or until the backend ended without it',
    labelNames: ['result'] as const,
    buckets: spawnBuckets,
    registers: [metrics],
  });
  const terminations = new Counter({
    name: names.terminations,
    help: 'Backends that ended, by reason (none: on their own)',
    labelNames: ['reason'] as const,
    registers: [metrics],
  });
  const prefetches = new Counter({
    name: names.prefetches,
    help: 'Images that were to be fetched before somebody asks for them, by what became of it',
    labelNames: ['result'] as const,
    registers: [metrics],
  });
  const dockerErrors = new Counter({
    name: names.dockerErrors,
    help: 'Calls to the Docker Engine that failed',
    labelNames: ['op'] as const,
    registers: [metrics],
  });
  openGauges(metrics, now);
  return {
    spawned: (result, seconds) => spawns.observe({ result }, seconds),
    terminated: (reason) => terminations.inc({ reason: reason ?? 'none' }),
    prefetched: (result) => prefetches.inc({ result }),
    dockerFailed: (op) => dockerErrors.inc({ op }),
    [Symbol.dispose]: () => {
      for (const name of Object.values(names)) metrics.removeSingleMetric(name);
    },
  };
}

function openGauges(metrics: Metrics, now: MetricsNow): void {
  const backends = new Gauge({
    name: names.backends,
    help: 'Backends on this node, by status',
    labelNames: ['status'] as const,
    registers: [metrics],
    collect() {
      for (const status of backendStatuses) this.set({ status }, 0);
      for (const status of now.statuses()) this.inc({ status });
    },
  });
  backends.reset();
  const values = [
    {
      name: names.dockerAnswers,
      help: 'Whether the Docker Engine of this node answers: 1, or 0',
      value: () => (now.engineAnswers() ? 1 : 0),
    },
    {
      name: names.offeredMemory,
      help: 'What the memory limits of the backends here may add up to',
      value: now.offeredMemory,
    },
    {
      name: names.promisedMemory,
      help: 'What the memory limits of the backends here add up to',
      value: now.promisedMemory,
    },
  ];
  for (const { name, help, value } of values) {
    new Gauge({
      name,
      help,
      registers: [metrics],
      collect() {
        this.set(value());
      },
    }).reset();
  }
}
