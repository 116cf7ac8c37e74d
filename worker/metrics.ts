/** The metrics of the worker. */
import type { Gauge } from 'prom-client';
import { backendStatuses } from '../contract/statuses.ts';
import type { BackendStatus, TerminationReason } from '../contract/statuses.ts';
import { MetricGroup } from '../core/metrics/metric-group.ts';
import type { Metrics } from '../core/metrics/metrics.ts';
import { EngineError } from './docker/engine-error.ts';
import type { Engine } from './docker/engine.ts';

type SpawnResult = 'ready' | 'failed' | 'stopped';

/**
 * `present`: the node already had the image. `unneeded`: the image was deleted, or no environment spawns it any more. `no-space`: a
 * prefetch would leave too little space on the disk. `failed`: all attempts failed.
 */
export type PrefetchResult = 'fetched' | 'present' | 'unneeded' | 'no-space' | 'failed';

/** Disposing removes the metrics, so that the next worker of the process can add its own. */
export interface WorkerMetrics extends Disposable {
  spawned(result: SpawnResult, seconds: number): void;
  terminated(reason: TerminationReason | null): void;
  prefetched(result: PrefetchResult): void;
  dockerFailed(operation: string): void;
}

/** From a warm start (a tenth of a second) to the start timeout. */
const spawnBuckets = [0.05, 0.1, 0.15, 0.2, 0.3, 0.5, 1, 2, 5, 10, 30, 60, 300];

/** The values that are read whenever metrics are collected. */
export interface MetricsNow {
  /** The status of each backend on this node. */
  readonly statuses: () => Iterable<BackendStatus>;
  readonly engineAnswers: () => boolean;
  /** In bytes. */
  readonly offeredMemory: () => number;
  readonly promisedMemory: () => number;
}

/** Adds the metrics of a worker to those of its process. */
export function openWorkerMetrics(metrics: Metrics, now: MetricsNow): WorkerMetrics {
  const group = new MetricGroup(metrics);
  const spawns = group.histogram(
    'berth_spawn_duration_seconds',
    'Time from scheduled until ready, or until the backend ended without becoming ready',
    ['result'],
    spawnBuckets,
  );
  const terminations = group.counter(
    'berth_terminations_total',
    'Backends that ended, by reason (none: on their own)',
    'reason',
  );
  const prefetches = group.counter('berth_image_prefetches_total', 'Images to prefetch, by result', 'result');
  const dockerErrors = group.counter('berth_docker_errors_total', 'Failed calls to the Docker Engine', 'op');
  addGauges(group, now);
  return {
    spawned: (result, seconds) => spawns.observe({ result }, seconds),
    terminated: (reason) => terminations.inc({ reason: reason ?? 'none' }),
    prefetched: (result) => prefetches.inc({ result }),
    dockerFailed: (op) => dockerErrors.inc({ op }),
    [Symbol.dispose]: () => group[Symbol.dispose](),
  };
}

function addGauges(group: MetricGroup, now: MetricsNow): void {
  group.gauge('berth_docker_answers', 'Whether the Docker Engine of this node answers: 1 or 0', (gauge) =>
    gauge.set(now.engineAnswers() ? 1 : 0),
  );
  group.gauge('berth_node_memory_offered_bytes', 'Maximum sum of the memory limits of backends on this node', (gauge) =>
    gauge.set(now.offeredMemory()),
  );
  group.gauge('berth_node_memory_promised_bytes', 'Sum of the memory limits of backends on this node', (gauge) =>
    gauge.set(now.promisedMemory()),
  );
  const countBackends = (gauge: Gauge<'status'>) => {
    for (const status of backendStatuses) gauge.set({ status }, 0);
    for (const status of now.statuses()) gauge.inc({ status });
  };
  group.gauge('berth_backends', 'Backends on this node, by status', countBackends, 'status');
}

/** An engine whose failed calls are counted. A missing image is no failure. */
export function countedEngine(engine: Engine, onFailure: (operation: string) => void): Engine {
  return {
    ...engine,
    containers: counted(engine.containers, 'container', onFailure),
    images: counted(engine.images, 'image', onFailure),
    network: counted(engine.network, 'network', onFailure),
    [Symbol.asyncDispose]: () => engine[Symbol.asyncDispose](),
  };
}

function counted<Noun extends object>(noun: Noun, name: string, onFailure: (operation: string) => void): Noun {
  return new Proxy(noun, {
    get(target, property) {
      const member: unknown = Reflect.get(target, property, target);
      if (typeof member !== 'function') return member;
      return (...args: unknown[]): unknown => {
        const result: unknown = Reflect.apply(member, target, args);
        if (result instanceof Promise) {
          result.catch((error: unknown) => {
            if (error instanceof EngineError && error.code !== 'no-image') onFailure(`${name}-${String(property)}`);
          });
        }
        return result;
      };
    },
  });
}
