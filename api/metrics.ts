import type { IncomingMessage, ServerResponse } from 'node:http';
import { Histogram } from 'prom-client';
import { requestId } from '../core/http/request-id.ts';
import type { Log } from '../core/log/log.ts';
import type { Metrics } from '../core/metrics/metrics.ts';

/** Labels of a request that are set while it is handled. */
interface RecordedRequest {
  /** The path of its endpoint as it is declared; absent for pages and unknown paths. */
  endpoint?: string;
}

/** Logs and counts each request, with the path of its endpoint or page as it is declared, so that tokens in URLs are not logged. */
export function requestRecorder(
  log: Log,
  metrics: Metrics,
): (request: IncomingMessage, response: ServerResponse) => RecordedRequest {
  const durations = new Histogram({
    name: 'berth_api_request_duration_seconds',
    help: 'Duration of API requests until the answer was sent, by endpoint and status',
    labelNames: ['method', 'endpoint', 'status'],
    registers: [metrics],
  });
  return (request, response) => {
    const id = requestId(request);
    const startedMs = performance.now();
    const recorded: RecordedRequest = {};
    response.on('close', () => {
      const durationMs = performance.now() - startedMs;
      const endpoint = recorded.endpoint ?? pageOf(request);
      const labels = { method: request.method ?? '', endpoint, status: String(response.statusCode) };
      durations.observe(labels, durationMs / 1000);
      log.info({ request: id, ...labels, durationMs: Math.round(durationMs) }, 'Request answered');
    });
    return recorded;
  };
}

/** The path with which Express found a page. */
function pageOf(request: IncomingMessage & { readonly route?: { readonly path?: unknown } }): string {
  return typeof request.route?.path === 'string' ? request.route.path : 'none';
}
