import { Counter, Gauge } from 'prom-client';
import type { Metrics } from '../../core/metrics/metrics.ts';
import type { BlobTotals, GcSummary } from './events.ts';

export interface GcMetrics extends Disposable {
  /** Counts a completed garbage collection. */
  count(summary: GcSummary, finishedAt: Date): void;
  /** Counts a garbage collection that failed. */
  countFailure(): void;
  /** Counts bytes that were removed after a garbage collection, when the wait was over. */
  countRemoved(removed: BlobTotals): void;
}

const prefix = 'berth_registry_collection';

/** Registers the metrics of garbage collection until disposed. */
export function openGcMetrics(metrics: Metrics): GcMetrics {
  const registers = [metrics];
  const runs = new Counter({
    name: `${prefix}_runs_total`,
    help: 'Garbage collections of this process, by outcome: done or failed',
    labelNames: ['outcome'],
    registers,
  });
  const collected = new Counter({
    name: `${prefix}_collected_total`,
    help: 'What garbage collection deleted: manifests, tags, links of repositories to blobs, uploads, blobs',
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
    help: 'Duration of the last garbage collection',
    registers,
  });
  const finished = new Gauge({
    name: `${prefix}_last_success_timestamp_seconds`,
    help: 'When this process last completed a garbage collection, in Unix time',
    registers,
  });
  const countRemoved = (removed: BlobTotals) => {
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
