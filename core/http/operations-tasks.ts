/** Work that a command asks a running process for: what it does is told while it does it, a line of JSON each. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { isEqual } from './is-equal.ts';
import { sendJson } from './json.ts';

/** Does something, and tells it. It ends early when the signal aborts. */
export type OperationsTask = (query: URLSearchParams, signal: AbortSignal) => AsyncIterable<object>;

export interface OperationsTasks {
  /** What a caller must show, as a bearer token. */
  readonly token: string;
  readonly byName: Readonly<Record<string, OperationsTask>>;
  /** Aborts when the process closes. */
  readonly signal: AbortSignal;
}

/** A task is asked for by `POST /tasks/<name>`. */
export const taskPath = '/tasks/';

/** Answers a request for a task. The last line of one that failed is `{"type":"error","message":…}`. */
export async function answerTask(
  { token, byName, signal }: OperationsTasks,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const { pathname, searchParams } = new URL(request.url ?? '', 'http://operations');
  const name = pathname.slice(taskPath.length);
  if (!isEqual(request.headers.authorization ?? '', `Bearer ${token}`)) {
    return sendJson(response, 401, { status: 'error', message: 'This needs the secret of this platform' });
  }
  const task = Object.hasOwn(byName, name) ? byName[name] : undefined;
  if (!task) return sendJson(response, 404, { status: 'error', message: 'This process has no such task' });
  if (request.method !== 'POST')
    return sendJson(response, 405, { status: 'error', message: 'Ask for a task with POST' });
  const left = new AbortController();
  response.once('close', () => left.abort(new Error('Whoever asked for this has left')));
  const stop = AbortSignal.any([signal, left.signal]);
  response.writeHead(200, { 'content-type': 'application/x-ndjson' });
  response.flushHeaders();
  try {
    await pipeline(Readable.from(linesOf(task(searchParams, stop)), { objectMode: false }), response, { signal });
  } catch {
    // The caller has left, or is cut off.
    response.destroy();
  }
}

async function* linesOf(events: AsyncIterable<object>): AsyncGenerator<string, void, undefined> {
  try {
    for await (const event of events) yield `${JSON.stringify(event)}\n`;
  } catch (error) {
    yield `${JSON.stringify({ type: 'error', message: error instanceof Error ? error.message : 'It failed' })}\n`;
  }
}
