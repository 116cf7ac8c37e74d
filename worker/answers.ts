/** What this node answers, through its gateway, to processes that ask what its backends say and use. */
import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { nodeQuestion } from '../contract/node-streams.ts';
import type { NodeQuestion } from '../contract/node-streams.ts';
import { readBackendLog } from './backend-log.ts';
import type { WorkerContext } from './context.ts';
import { EngineError } from './docker/engine-error.ts';

/** Answers a question. Never rejects. */
export async function answerQuestion(
  worker: WorkerContext,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const question = nodeQuestion(request.url ?? '');
  // By an old address one may come to another node.
  if (request.headers.host !== worker.settings.node) response.writeHead(421).end();
  else if (!question || request.method !== 'GET') response.writeHead(404).end();
  else await answerStream(worker, question, response);
}

async function answerStream(worker: WorkerContext, question: NodeQuestion, response: ServerResponse): Promise<void> {
  const gone = new AbortController();
  response.once('close', () => gone.abort(new Error('Whoever asked has left')));
  const signal = AbortSignal.any([gone.signal, worker.closing]);
  try {
    await sendRecords(recordsOf(worker, question, signal), response, signal);
  } catch (error) {
    if (!signal.aborted) worker.log.warn({ err: error, ...question }, 'stream of a backend broke');
    if (response.headersSent || signal.aborted) response.destroy();
    else response.writeHead(error instanceof EngineError ? 503 : 500).end();
  }
}

async function* recordsOf(
  worker: WorkerContext,
  { about, backend, after }: NodeQuestion,
  signal: AbortSignal,
): AsyncGenerator<readonly unknown[], void, void> {
  if (about === 'log') {
    yield* readBackendLog(worker, { backend, after, signal });
    return;
  }
  const run = worker.runs.get(backend);
  if (run?.container?.started && !run.concluding) yield* worker.measurements.follow(run, signal);
}

/** Sends records as they come, no faster than they are taken. Only what comes to its end is ended: the rest looks broken. */
export async function sendRecords(
  batches: AsyncIterable<readonly unknown[]>,
  response: ServerResponse,
  signal: AbortSignal,
): Promise<void> {
  for await (const records of batches) {
    if (!response.headersSent) response.writeHead(200, { 'content-type': 'application/x-ndjson' }).flushHeaders();
    if (records.length === 0) continue;
    const isTaken = response.write(records.map((record) => `${JSON.stringify(record)}\n`).join(''));
    if (!isTaken) await once(response, 'drain', { signal });
  }
  response.end();
}
