/** The listener for those who operate the platform: is the process alive, can it work, how does it do. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Metrics } from '../metrics/metrics.ts';
import { sendJson } from './json.ts';
import { answerTask, taskPath } from './operations-tasks.ts';
import type { OperationsTasks } from './operations-tasks.ts';

/** What must hold for the process to be ready: each check resolves, or rejects with what is wrong. */
export type ReadinessChecks = Readonly<Record<string, () => Promise<void>>>;

/**
 * Answers `/healthz` (the process lives), `/readyz` (all checks hold), `/metrics` (Prometheus text), and does tasks for those
 * who have the platform's secret.
 */
export function operationsHandler(
  metrics: Metrics,
  checks: ReadinessChecks,
  tasks: OperationsTasks,
): (request: IncomingMessage, response: ServerResponse) => void {
  return (request, response) => {
    const path = request.url?.split('?')[0];
    if (path === '/healthz') sendJson(response, 200, { status: 'ok' });
    else if (path === '/readyz') void answerReadiness(response, checks);
    else if (path === '/metrics') void answerMetrics(response, metrics);
    else if (path?.startsWith(taskPath)) void answerTask(tasks, request, response);
    else sendJson(response, 404, { status: 'error', message: 'Only /healthz, /readyz and /metrics are here' });
  };
}

async function answerReadiness(response: ServerResponse, checks: ReadinessChecks): Promise<void> {
  const results = await Promise.all(
    Object.entries(checks).map(async ([name, check]) => {
      try {
        await check();
        return [name, 'ok'] as const;
      } catch (error) {
        return [name, error instanceof Error ? error.message : 'failed'] as const;
      }
    }),
  );
  const ready = results.every(([, result]) => result === 'ok');
  sendJson(response, ready ? 200 : 503, { status: ready ? 'ok' : 'error', checks: Object.fromEntries(results) });
}

async function answerMetrics(response: ServerResponse, metrics: Metrics): Promise<void> {
  const text = await metrics.metrics();
  response.writeHead(200, { 'content-type': metrics.contentType });
  response.end(text);
}
