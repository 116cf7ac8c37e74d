import { Counter } from 'prom-client';
import { requestId } from '../core/http/request-id.ts';
import { EventStreams } from '../core/http/sse.ts';
import type { ApiDependencies } from './dependencies.ts';

/** The event streams of the API: a stream whose client does not read is dropped, logged and counted. */
export function openEventStreams(
  { clock, log, metrics }: Pick<ApiDependencies, 'clock' | 'log' | 'metrics'>,
  closing: AbortSignal,
): EventStreams {
  const dropped = new Counter({
    name: 'berth_api_dropped_streams_total',
    help: 'Event streams that the API dropped because their clients did not read, by reason: stalled, behind, crowded',
    labelNames: ['reason'],
    registers: [metrics],
  });
  return new EventStreams({
    clock,
    closing,
    onDrop: ({ req: request }, reason) => {
      dropped.inc({ reason });
      log.info({ request: requestId(request), reason }, 'Dropped an event stream whose client does not read');
    },
  });
}
