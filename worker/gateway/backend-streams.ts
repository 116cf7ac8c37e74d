/** Streams the logs and metrics of this node's backends to other processes, through the gateway. */
import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { parseBackendStreamPath } from '../../contract/backend-streams.ts';
import type { BackendStreamRequest } from '../../contract/backend-streams.ts';
import { readBackendLog } from '../logs/backend-log.ts';
import type { WorkerContext } from '../context.ts';
import { EngineError } from '../docker/engine-error.ts';

/** Far more than the users who watch a backend need. Each stream of a log costs the engine work with every line. */
export const maxStreamsOfBackend = 32;

/** Answers requests for streams of this node's backends. */
export class BackendStreams {
  readonly #worker: WorkerContext;
  readonly #open = new Map<string, number>();

  constructor(worker: WorkerContext) {
    this.#worker = worker;
  }

  /** Answers a request. Never rejects. */
  async answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const streamRequest = parseBackendStreamPath(request.url ?? '');
    // An old address may belong to another node by now.
    if (request.headers.host !== this.#worker.settings.node) response.writeHead(421).end();
    else if (!streamRequest || request.method !== 'GET') response.writeHead(404).end();
    else if (this.#openOf(streamRequest) >= maxStreamsOfBackend) response.writeHead(429).end();
    else await this.#stream(streamRequest, response);
  }

  #openOf({ backend }: BackendStreamRequest): number {
    return this.#open.get(backend) ?? 0;
  }

  async #stream(streamRequest: BackendStreamRequest, response: ServerResponse): Promise<void> {
    const { backend } = streamRequest;
    const gone = new AbortController();
    response.once('close', () => gone.abort(new Error('The client has disconnected')));
    const signal = AbortSignal.any([gone.signal, this.#worker.closing]);
    this.#open.set(backend, this.#openOf(streamRequest) + 1);
    try {
      await sendRecords(recordsOf(this.#worker, streamRequest, signal), response, signal);
    } catch (error) {
      if (!signal.aborted) this.#worker.log.warn({ err: error, ...streamRequest }, 'Stream of a backend failed');
      if (response.headersSent || signal.aborted) response.destroy();
      else response.writeHead(error instanceof EngineError ? 503 : 500).end();
    } finally {
      const left = this.#openOf(streamRequest) - 1;
      if (left > 0) this.#open.set(backend, left);
      else this.#open.delete(backend);
    }
  }
}

async function* recordsOf(
  worker: WorkerContext,
  { about, backend, after, storedOnly }: BackendStreamRequest,
  signal: AbortSignal,
): AsyncGenerator<readonly unknown[], void, void> {
  if (about === 'log') {
    yield* readBackendLog(worker, { backend, after, storedOnly, signal });
    return;
  }
  const run = worker.runs.get(backend);
  if (run?.container?.started && !run.isFinalizing) yield* worker.liveStats.follow(run, signal);
}

/** Sends records as fast as the client reads. Ends the response only after the last record: an aborted stream looks broken. */
export async function sendRecords(
  batches: AsyncIterable<readonly unknown[]>,
  response: ServerResponse,
  signal: AbortSignal,
): Promise<void> {
  for await (const records of batches) {
    if (!response.headersSent) response.writeHead(200, { 'content-type': 'application/x-ndjson' }).flushHeaders();
    if (records.length === 0) continue;
    const isFree = response.write(records.map((record) => `${JSON.stringify(record)}\n`).join(''));
    if (!isFree) await once(response, 'drain', { signal });
  }
  response.end();
}
