/** What the worker counts. */
import { Counter, Gauge, Histogram } from 'prom-client';
import { backendStatuses } from '../contract/statuses.ts';
import type { BackendStatus, TerminationReason } from '../contract/statuses.ts';
import type { Metrics } from '../core/metrics/metrics.ts';

type SpawnResult = 'ready' | 'failed' | 'stopped';

export interface Figures {
  spawned(result: SpawnResult, seconds: number): void;
  terminated(reason: TerminationReason | null): void;
  dockerFailed(operation: string): void;
}

/** From a warm start (a tenth of a second) to the start-up time-out. */
const spawnBuckets = [0.05, 0.1, 0.15, 0.2, 0.3, 0.5, 1, 2, 5, 10, 30, 60, 300];

/** @param statusesNow - the status of each backend on this node, asked for whenever metrics are read */
export function openFigures(metrics: Metrics, statusesNow: () => Iterable<BackendStatus>): Figures {
  const spawns = new Histogram({
    name: 'berth_spawn_duration_seconds',
    help: 'Time from scheduled until ready, or until the backend ended without it',
    labelNames: ['result'] as const,
    buckets: spawnBuckets,
    registers: [metrics],
  });
  const terminations = new Counter({
    name: 'berth_terminations_total',
    help: 'Backends that ended, by reason (none: on their own)',
    labelNames: ['reason'] as const,
    registers: [metrics],
  });
  const dockerErrors = new Counter({
    name: 'berth_docker_errors_total',
    help: 'Calls to the Docker Engine that failed',
    labelNames: ['op'] as const,
    registers: [metrics],
  });
  openBackendsGauge(metrics, statusesNow);
  return {
    spawned: (result, seconds) => spawns.observe({ result }, seconds),
    terminated: (reason) => terminations.inc({ reason: reason ?? 'none' }),
    dockerFailed: (op) => dockerErrors.inc({ op }),
  };
}

function openBackendsGauge(metrics: Metrics, statusesNow: () => Iterable<BackendStatus>): void {
  const gauge = new Gauge({
    name: 'berth_backends',
    help: 'Backends on this node, by status',
    labelNames: ['status'] as const,
    registers: [metrics],
    collect() {
      for (const status of backendStatuses) this.set({ status }, 0);
      for (const status of statusesNow()) this.inc({ status });
    },
  });
  gauge.reset();
}
