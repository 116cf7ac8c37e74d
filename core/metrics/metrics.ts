import { Registry, collectDefaultMetrics } from 'prom-client';

/** The registry of this process's metrics. Components register theirs on it; the operations listener serves them. */
export type Metrics = Registry;

/** How often the delay of the event loop is measured. At the default of 10 ms, that takes a third of the CPU time of an idle process. */
const eventLoopMonitoringPrecision = 100;

/** Creates a registry with the metrics of the process (memory, CPU, event loop). */
export function openMetrics(): Metrics {
  const metrics = new Registry();
  collectDefaultMetrics({ register: metrics, eventLoopMonitoringPrecision });
  return metrics;
}
