import { requestId } from '../core/http/request-id.ts';
import { EventStreams } from '../core/http/sse.ts';
import { MetricGroup } from '../core/metrics/metric-group.ts';
import type { ApiDependencies } from './dependencies.ts';

/** The event streams of the API: a stream whose client does not read is dropped, logged and counted. */
export function openEventStreams(
  { clock, log, metrics }: Pick<ApiDependencies, 'clock' | 'log' | 'metrics'>,
  closing: AbortSignal,
): EventStreams {
  const dropped = new MetricGroup(metrics).counter(
    'berth_api_dropped_streams_total',
    'Event streams that the API dropped because their clients did not read, by reason: stalled, behind, crowded',
    'reason',
  );
  return new EventStreams({
    clock,
    closing,
    onDrop: ({ req: request }, reason) => {
      dropped.inc({ reason });
      log.info({ request: requestId(request), reason }, 'Dropped an event stream whose client does not read');
    },
  });
}
