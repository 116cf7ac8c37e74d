import { Registry, collectDefaultMetrics } from 'prom-client';

/** The registry of this process's metrics. Rooms register their own on it; the operations listener shows them. */
export type Metrics = Registry;

/** A new registry, with the process's own figures (memory, CPU, event loop) in it. */
export function openMetrics(): Metrics {
  const metrics = new Registry();
  collectDefaultMetrics({ register: metrics });
  return metrics;
}
