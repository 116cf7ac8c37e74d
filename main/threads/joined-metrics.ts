/** Joins the metrics of all threads into one response to a scrape. */
import { AggregatorRegistry } from 'prom-client';
import type { Metrics } from '../../core/metrics/metrics.ts';
import type { ThreadMetric } from './messages.ts';

/** What the operations listener needs of the metrics. */
export type MetricsText = Pick<Metrics, 'contentType' | 'metrics'>;

/** Joins metrics: values with the same name and labels are added up. */
export function joinMetrics(own: Metrics, others: () => Promise<readonly (readonly ThreadMetric[])[]>): MetricsText {
  return {
    contentType: own.contentType,
    metrics: async () => {
      const theirs = await others();
      const shared = new Set(theirs.flat().map(({ name }) => name));
      const mine = (await own.getMetricsAsJSON()) as ThreadMetric[];
      // prom-client would omit or average some metrics, such as start times, as if they came from several processes.
      const kept = mine.map((each) => (shared.has(each.name) ? each : { ...each, aggregator: 'first' as const }));
      return await AggregatorRegistry.aggregate([kept, ...theirs]).metrics();
    },
  };
}
