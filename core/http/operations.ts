/** The listener for operators: whether the process is alive, whether it is ready, and its metrics. */
import { createHash, timingSafeEqual } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { isIPv4 } from 'node:net';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { sendJson } from './json.ts';
import type { Metrics } from '../metrics/metrics.ts';

/** The conditions for a process to be ready: each check resolves, or rejects with the problem. */
export type ReadinessChecks = Readonly<Record<string, () => Promise<void>>>;

export interface Operations {
  readonly metrics: Pick<Metrics, 'contentType' | 'metrics'>;
  readonly checks: ReadinessChecks;
  readonly tasks: OperationsTasks;
  /** The host on which the process listens. */
  readonly host: string;
  /** The bearer token with which clients on other machines get more than a status. Absent: they cannot. */
  readonly token?: string;
}

/**
 * Answers `/healthz` (the process is alive), `/readyz` (all checks pass), `/metrics` (Prometheus text), and runs tasks for clients
 * that have the platform's secret. A client on another machine without the token gets only the status of the first two. On its own
 * machine, it answers only requests for its own host names: a page in a browser there must not read it under another name.
 */
export function operationsHandler(
  operations: Operations,
): (request: IncomingMessage, response: ServerResponse) => Promise<void> {
  const { metrics, checks, tasks } = operations;
  return async (request, response) => {
    const path = request.url?.split('?')[0];
    const isAuthenticated = hasToken(request, operations.token);
    const isTrusted = isAuthenticated || isLocal(request);
    if (isLocal(request) && !isAuthenticated && !isOwnHost(request.headers.host, operations.host)) refuseHost(response);
    else if (path === '/healthz') sendJson(response, 200, { status: 'ok' });
    else if (path === '/readyz') await answerReadiness(response, checks, isTrusted);
    else if (path === '/metrics' && isTrusted) await answerMetrics(response, metrics);
    else if (path === '/metrics') refuseUnauthenticated(response);
    else if (path?.startsWith(taskPath)) await answerTask(tasks, request, response);
    else
      sendJson(response, 404, {
        status: 'error',
        message: 'There is no such endpoint, use /healthz, /readyz or /metrics',
      });
  };
}

/** Every process of this machine may read the metrics and the checks. */
function isLocal({ socket }: IncomingMessage): boolean {
  return /^(?:::ffff:)?127\.|^::1$/.test(socket.remoteAddress ?? '');
}

function hasToken({ headers }: IncomingMessage, token: string | undefined): boolean {
  return token !== undefined && isEqual(headers.authorization ?? '', `Bearer ${token}`);
}

function refuseUnauthenticated(response: ServerResponse): void {
  response.setHeader('www-authenticate', 'Bearer');
  sendJson(response, 401, { status: 'error', message: 'Requests from other machines need the operations token' });
}

function refuseHost(response: ServerResponse): void {
  const message = 'This listener does not serve this host, use 127.0.0.1, its configured host, or the operations token';
  sendJson(response, 421, { status: 'error', message });
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

async function answerMetrics(response: ServerResponse, metrics: Operations['metrics']): Promise<void> {
  const text = await metrics.metrics();
  response.writeHead(200, { 'content-type': metrics.contentType });
  response.end(text);
}

/**
 * Whether a `Host` header names this machine by a loopback name or by the configured host. A web page can point its own name at the
 * loopback address (DNS rebinding), but it cannot use one of these names. Browsers always send the header.
 */
function isOwnHost(header: string | undefined, configured: string): boolean {
  if (header === undefined) return true;
  const host = header.toLowerCase().replace(/:\d+$/, '');
  return host === 'localhost' || host === '[::1]' || isLoopback(host) || host === configured.toLowerCase();
}

function isLoopback(host: string): boolean {
  return isIPv4(host) && host.startsWith('127.');
}

/** Whether two texts are equal, compared in constant time. */
function isEqual(one: string, other: string): boolean {
  const hash = (text: string) => createHash('sha256').update(text).digest();
  return timingSafeEqual(hash(one), hash(other));
}

/** Performs a task and yields its events. Ends early when the signal aborts. */
export type OperationsTask = (query: URLSearchParams, signal: AbortSignal) => AsyncIterable<object>;

export interface OperationsTasks {
  /** The bearer token that callers need. */
  readonly token: string;
  readonly byName: Readonly<Record<string, OperationsTask>>;
  /** Aborts when the process closes. */
  readonly signal: AbortSignal;
}

/** `POST /tasks/<name>` runs a task. */
export const taskPath = '/tasks/';

/** Runs a task and answers with its events, one per line. The last line of a task that failed is `{"type":"error","message":…}`. */
async function answerTask(
  { token, byName, signal }: OperationsTasks,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const { pathname, searchParams } = new URL(request.url ?? '', 'http://operations');
  const name = pathname.slice(taskPath.length);
  if (!isEqual(request.headers.authorization ?? '', `Bearer ${token}`)) {
    return sendJson(response, 401, { status: 'error', message: 'Tasks need the secret of this platform' });
  }
  const task = Object.hasOwn(byName, name) ? byName[name] : undefined;
  if (!task) return sendJson(response, 404, { status: 'error', message: 'This process has no such task' });
  if (request.method !== 'POST') return sendJson(response, 405, { status: 'error', message: 'Run a task with POST' });
  const left = new AbortController();
  response.once('close', () => left.abort(new Error('The client has disconnected')));
  const stop = AbortSignal.any([signal, left.signal]);
  response.writeHead(200, { 'content-type': 'application/x-ndjson' });
  response.flushHeaders();
  try {
    await pipeline(Readable.from(linesOf(task(searchParams, stop)), { objectMode: false }), response, { signal });
  } catch {
    // The client has disconnected, or the process closes.
    response.destroy();
  }
}

async function* linesOf(events: AsyncIterable<object>): AsyncGenerator<string, void, undefined> {
  try {
    for await (const event of events) yield `${JSON.stringify(event)}\n`;
  } catch (error) {
    yield `${JSON.stringify({ type: 'error', message: error instanceof Error ? error.message : 'The task failed' })}\n`;
  }
}
