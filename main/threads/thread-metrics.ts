/** Measures each thread with a component: the delay of its event loop, and its heap. */
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { getHeapStatistics } from 'node:v8';
import { Gauge } from 'prom-client';
import type { Metrics } from '../../core/metrics/metrics.ts';

const quantiles = [0.5, 0.99];

/** At least a hundred samples between two scrapes, and rare enough for an idle process. */
const resolutionMs = 100;

const nsPerSecond = 1e9;

/** Registers the metrics of this thread, until disposed. */
export function measureThread(thread: string, metrics: Metrics): Disposable {
  const delay = monitorEventLoopDelay({ resolution: resolutionMs });
  delay.enable();
  const loop = new Gauge({
    name: 'berth_thread_event_loop_delay_seconds',
    help: 'How late the event loop of a thread was since the last scrape, by quantile',
    labelNames: ['thread', 'quantile'],
    registers: [metrics],
    collect() {
      for (const quantile of quantiles) {
        const lateNs = Math.max(0, delay.percentile(quantile * 100) - resolutionMs * 1e6);
        this.set({ thread, quantile }, (lateNs || 0) / nsPerSecond);
      }
      delay.reset();
    },
  });
  const heap = new Gauge({
    name: 'berth_thread_heap_bytes',
    help: 'The memory of the JavaScript heap of a thread',
    labelNames: ['thread'],
    registers: [metrics],
    collect() {
      this.set({ thread }, getHeapStatistics().total_heap_size);
    },
  });
  return {
    [Symbol.dispose]: () => {
      delay.disable();
      for (const gauge of [loop, heap]) gauge.reset();
    },
  };
}
