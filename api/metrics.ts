import type { RequestHandler } from 'express';
import { Histogram } from 'prom-client';
import { requestId } from '../core/http/request-id.ts';
import type { Log } from '../core/log/log.ts';
import type { Metrics } from '../core/metrics/metrics.ts';

/** Logs and counts each request, with the path pattern of its endpoint, so that tokens in URLs are not logged. */
export function measureRequests(log: Log, metrics: Metrics): RequestHandler {
  const durations = new Histogram({
    name: 'berth_api_request_duration_seconds',
    help: 'Duration of API requests until the answer was sent, by endpoint and status',
    labelNames: ['method', 'endpoint', 'status'],
    registers: [metrics],
  });
  return (request, response, next) => {
    const id = requestId(request, response);
    const startedMs = performance.now();
    response.once('close', () => {
      const durationMs = performance.now() - startedMs;
      const endpoint = typeof request.route?.path === 'string' ? request.route.path : 'none';
      const labels = { method: request.method, endpoint, status: String(response.statusCode) };
      durations.observe(labels, durationMs / 1000);
      log.info({ request: id, ...labels, durationMs: Math.round(durationMs) }, 'Request answered');
    });
    next();
  };
}
