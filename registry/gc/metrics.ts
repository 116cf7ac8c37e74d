import { MetricGroup } from '../../core/metrics/metric-group.ts';
import type { Metrics } from '../../core/metrics/metrics.ts';
import type { BlobTotals, GcSummary } from './events.ts';

export interface GcMetrics extends Disposable {
  /** Counts a completed garbage collection. */
  count(summary: GcSummary, finishedAt: Date): void;
  /** Counts a garbage collection that failed. */
  countFailure(): void;
  /** Counts bytes that were removed between two garbage collections, at the end of their wait. */
  countRemoved(removed: BlobTotals): void;
}

const prefix = 'berth_registry_collection';

/** Registers the metrics of garbage collection until disposed. */
export function openGcMetrics(metrics: Metrics): GcMetrics {
  const group = new MetricGroup(metrics);
  const runs = group.counter(
    `${prefix}_runs_total`,
    'Garbage collections of this process, by outcome: done or failed',
    'outcome',
  );
  const collected = group.counter(
    `${prefix}_collected_total`,
    'What garbage collection deleted: manifests, tags, links of repositories to blobs, uploads, blobs',
    'what',
  );
  const bytes = group.counter(`${prefix}_freed_bytes_total`, 'Bytes of blobs that garbage collection removed');
  const duration = group.gauge(`${prefix}_seconds`, 'Duration of the last garbage collection');
  const finished = group.gauge(
    `${prefix}_last_success_timestamp_seconds`,
    'When this process last completed a garbage collection, in Unix time',
  );
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
    [Symbol.dispose]: () => group[Symbol.dispose](),
  };
}
