import { Counter, Gauge } from 'prom-client';
import type { Metrics } from '../../core/metrics/metrics.ts';
import type { CollectionSummary } from './events.ts';

export interface CollectionMetrics extends Disposable {
  /** Counts a collection that came to its end. */
  count(summary: CollectionSummary, finishedAt: Date): void;
  /** Counts a collection that broke off. */
  countFailure(): void;
  /** Counts bytes that went after a collection, when the wait was over. */
  countRemoved(removed: CollectionSummary['removed']): void;
}

const prefix = 'berth_registry_collection';

/** The figures of garbage collection, registered until disposed. */
export function openCollectionMetrics(metrics: Metrics): CollectionMetrics {
  const registers = [metrics];
  const runs = new Counter({
    name: `${prefix}_runs_total`,
    help: 'Garbage collections of this process, by how they ended: done or failed',
    labelNames: ['outcome'],
    registers,
  });
  const collected = new Counter({
    name: `${prefix}_collected_total`,
    help: 'What garbage collection took away: manifests, tags, links of repositories to blobs, uploads, blobs',
    labelNames: ['what'],
    registers,
  });
  const bytes = new Counter({
    name: `${prefix}_freed_bytes_total`,
    help: 'Bytes of blobs that garbage collection removed',
    registers,
  });
  const duration = new Gauge({
    name: `${prefix}_seconds`,
    help: 'How long the last garbage collection took',
    registers,
  });
  const finished = new Gauge({
    name: `${prefix}_last_success_timestamp_seconds`,
    help: 'When this process last came to the end of a garbage collection, in Unix time',
    registers,
  });
  const countRemoved = (removed: CollectionSummary['removed']) => {
    collected.inc({ what: 'blobs' }, removed.blobs);
    bytes.inc(removed.bytes);
  };
  return {
    count: (summary, finishedAt) => {
      runs.inc({ outcome: 'done' });
      for (const what of ['manifests', 'tags', 'links', 'uploads'] as const) collected.inc({ what }, summary[what]);
      countRemoved(summary.removed);
      duration.set(summary.duration_ms / 1000);
      finished.set(finishedAt.getTime() / 1000);
    },
    countFailure: () => runs.inc({ outcome: 'failed' }),
    countRemoved,
    [Symbol.dispose]: () => {
      for (const each of ['runs_total', 'collected_total', 'freed_bytes_total', 'seconds']) {
        metrics.removeSingleMetric(`${prefix}_${each}`);
      }
      metrics.removeSingleMetric(`${prefix}_last_success_timestamp_seconds`);
    },
  };
}
