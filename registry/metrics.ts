import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { MetricGroup } from '../core/metrics/metric-group.ts';
import type { Metrics } from '../core/metrics/metrics.ts';
import type { RegistryErrorName } from './error-catalogue.ts';

/** Bytes on a connection during one request, heads included. */
interface Traffic {
  readonly bytesIn: number;
  readonly bytesOut: number;
}

export interface RegistryMetrics extends Disposable {
  /** Counts a request that has ended. `code` is its status, or `gone` if the client disconnected before it received its answer. */
  count(
    request: IncomingMessage,
    about: { readonly operation: string; readonly code: number | 'gone'; readonly durationMs: number },
  ): Traffic;
  /** Counts a request that was answered with an error of the catalogue. */
  countError(reason: RegistryErrorName): void;
}

/** From a look-up in memory to minutes for a large layer. */
const secondsBuckets = [0.001, 0.005, 0.02, 0.1, 0.5, 2, 10, 60, 300];

/** Registers the registry's metrics until disposed. */
export function openRegistryMetrics(metrics: Metrics): RegistryMetrics {
  const group = new MetricGroup(metrics);
  const requests = group.histogram(
    'berth_registry_request_seconds',
    'Duration of requests to the registry, by operation and class of their status',
    ['operation', 'code'],
    secondsBuckets,
  );
  const received = group.counter('berth_registry_received_bytes_total', 'Bytes that clients sent to the registry');
  const sent = group.counter('berth_registry_sent_bytes_total', 'Bytes that the registry sent to clients');
  const errors = group.counter('berth_registry_errors_total', 'Errors that the registry answered, by reason', 'reason');
  /** The totals of each connection at the end of its last request. */
  const counted = new WeakMap<Socket, Traffic>();
  return {
    count: ({ socket }, { operation, code, durationMs }) => {
      const before = counted.get(socket) ?? { bytesIn: 0, bytesOut: 0 };
      const now = { bytesIn: socket.bytesRead, bytesOut: socket.bytesWritten };
      counted.set(socket, now);
      const traffic = { bytesIn: now.bytesIn - before.bytesIn, bytesOut: now.bytesOut - before.bytesOut };
      requests.observe({ operation, code: classOf(code) }, durationMs / 1000);
      received.inc(traffic.bytesIn);
      sent.inc(traffic.bytesOut);
      return traffic;
    },
    countError: (reason) => errors.inc({ reason }),
    [Symbol.dispose]: () => group[Symbol.dispose](),
  };
}

function classOf(code: number | 'gone'): string {
  return code === 'gone' ? code : `${Math.floor(code / 100)}xx`;
}
