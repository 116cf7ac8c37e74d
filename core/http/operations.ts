/** The listener for those who operate the platform: is the process alive, can it work, how does it do. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Metrics } from '../metrics/metrics.ts';
import { sendJson } from './json.ts';
import { isEqual } from './is-equal.ts';
import { answerTask, taskPath } from './operations-tasks.ts';
import type { OperationsTasks } from './operations-tasks.ts';

/** What must hold for the process to be ready: each check resolves, or rejects with what is wrong. */
export type ReadinessChecks = Readonly<Record<string, () => Promise<void>>>;

export interface Operations {
  readonly metrics: Metrics;
  readonly checks: ReadinessChecks;
  readonly tasks: OperationsTasks;
  /** What callers on other machines must show, as a bearer token, to learn more than a status. Without it they cannot. */
  readonly token?: string;
}

/**
 * Answers `/healthz` (the process lives), `/readyz` (all checks hold), `/metrics` (Prometheus text), and does tasks for those
 * who have the platform's secret. Strangers on other machines hear of the first two whether they hold, and nothing else.
 */
export function operationsHandler(
  operations: Operations,
): (request: IncomingMessage, response: ServerResponse) => void {
  const { metrics, checks, tasks } = operations;
  return (request, response) => {
    const path = request.url?.split('?')[0];
    const isTrusted = isLocal(request) || isTokenShown(request, operations.token);
    if (path === '/healthz') sendJson(response, 200, { status: 'ok' });
    else if (path === '/readyz') void answerReadiness(response, checks, isTrusted);
    else if (path === '/metrics' && isTrusted) void answerMetrics(response, metrics);
    else if (path === '/metrics') refuseStranger(response);
    else if (path?.startsWith(taskPath)) void answerTask(tasks, request, response);
    else sendJson(response, 404, { status: 'error', message: 'Only /healthz, /readyz and /metrics are here' });
  };
}

/** Whoever is on this machine may read what its processes say. */
function isLocal({ socket }: IncomingMessage): boolean {
  return /^(?:::ffff:)?127\.|^::1$/.test(socket.remoteAddress ?? '');
}

function isTokenShown({ headers }: IncomingMessage, token: string | undefined): boolean {
  return token !== undefined && isEqual(headers.authorization ?? '', `Bearer ${token}`);
}

function refuseStranger(response: ServerResponse): void {
  response.setHeader('www-authenticate', 'Bearer');
  sendJson(response, 401, { status: 'error', message: 'From another machine this needs the token for operations' });
}

async function answerReadiness(response: ServerResponse, checks: ReadinessChecks, isTrusted: boolean): Promise<void> {
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
  const status = ready ? 'ok' : 'error';
  sendJson(response, ready ? 200 : 503, { status, ...(isTrusted && { checks: Object.fromEntries(results) }) });
}

async function answerMetrics(response: ServerResponse, metrics: Metrics): Promise<void> {
  const text = await metrics.metrics();
  response.writeHead(200, { 'content-type': metrics.contentType });
  response.end(text);
}
