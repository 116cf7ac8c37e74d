import { Registry, collectDefaultMetrics } from 'prom-client';

/** The registry of this process's metrics. Components register theirs on it; the operations listener serves them. */
export type Metrics = Registry;

/** Creates a registry with the metrics of the process (memory, CPU, event loop). */
export function openMetrics(): Metrics {
  const metrics = new Registry();
  collectDefaultMetrics({ register: metrics });
  return metrics;
}
