/** Streams logs and metrics of backends from their nodes to clients, as fast as the clients read. */
import { addAbortSignal } from 'node:stream';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { metricsRecord } from '../contract/backend.ts';
import { logPosition, logRecord, backendStreamPath } from '../contract/backend-streams.ts';
import type { BackendStreamRequest } from '../contract/backend-streams.ts';
import { lastEventId } from '../core/http/sse.ts';
import type { EventStream } from '../core/http/sse.ts';
import { linkGet } from '../core/link/link-client.ts';
import { lineBatchesOf } from '../core/text/lines.ts';
import { rank } from '../model/backend.ts';
import type { Backend, StatusEntry } from '../model/backend.ts';
import { nearestGateway, nodes } from '../model/node.ts';
import { ApiError } from '../model/api-error.ts';
import type { Api } from './dependencies.ts';
import { presentStatus } from './present.ts';

interface StreamRequest {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly signal: AbortSignal;
}

interface StatusEvent {
  /** The position in the history of the status that it reports. */
  readonly id: number;
  readonly data: string;
}

type StatusEvents = (history: readonly StatusEntry[]) => readonly StatusEvent[];

/** The events of a history, made once for all streams of a backend. */
export function statusEvents(
  present: (history: readonly StatusEntry[]) => { id: number; data: object }[],
): StatusEvents {
  const known = new WeakMap<readonly StatusEntry[], readonly StatusEvent[]>();
  return (history) => {
    let events = known.get(history);
    if (!events) {
      events = present(history).map(({ id, data }) => ({ id, data: JSON.stringify(data) }));
      known.set(history, events);
    }
    return events;
  };
}

const v2Events = statusEvents((history) => history.map((entry, id) => ({ id, data: presentStatus(entry) })));

/**
 * Streams the statuses of a backend: its history (from `Last-Event-ID` on, if the client sends it), then each new status until
 * `terminated`. An event's ID is its position in the history. A client that has all events of an ended backend gets 204, after which
 * browsers do not reconnect.
 */
export async function streamStatuses(
  api: Api,
  { id: backend, live, history: known }: Backend,
  { request, response, signal }: StreamRequest,
  eventsOf: StatusEvents = v2Events,
): Promise<void> {
  let last = lastEventId(request.headers['last-event-id']) ?? -1;
  if (!live && last >= (eventsOf(known).at(-1)?.id ?? 0)) {
    response.writeHead(204).end();
    return;
  }
  using stream = api.eventStreams.open(response);
  for await (const { history } of api.watch.follow(backend, signal)) {
    for (const { id, data } of eventsOf(history)) {
      if (id <= last) continue;
      stream.send(id, data);
      last = id;
    }
  }
  stream.end();
}

/**
 * Streams the log of a backend: its kept lines (from `Last-Event-ID` on, if the client sends it), then, unless only stored lines are
 * wanted, each new line until the backend has ended. An event's ID is the position of its line in the log.
 */
export async function streamLog(
  api: Api,
  backend: Backend,
  { storedOnly = false, ...to }: StreamRequest & { readonly storedOnly?: boolean },
): Promise<void> {
  const after = logPosition.safeParse(to.request.headers['last-event-id']).data;
  const eventOf = (text: string) => {
    const { at, line } = logRecord.parse(JSON.parse(text));
    return { id: at, data: line };
  };
  await streamFromNode(api, { backend, wanted: { about: 'log', backend: backend.id, after, storedOnly }, eventOf }, to);
}

/** Returns the last lines of the kept log of an ended backend, at most `count`. Throws as `streamLog`. */
export async function lastLogLines(
  api: Api,
  { id, node }: Backend,
  count: number,
  signal: AbortSignal,
): Promise<string[]> {
  if (node === undefined) return [];
  const last: string[] = [];
  for await (const lines of lineBatchesOf(await requestStream(api, node, { about: 'log', backend: id }, signal))) {
    last.push(...lines);
    last.splice(0, last.length - count);
  }
  return last.map((text) => logRecord.parse(JSON.parse(text)).line);
}

/**
 * Streams the metrics of a backend, every second until it has ended. Metrics are not kept. IDs continue from `Last-Event-ID`, because
 * every event needs one.
 */
export async function streamMetrics(api: Api, backend: Backend, to: StreamRequest): Promise<void> {
  let next = (lastEventId(to.request.headers['last-event-id']) ?? -1) + 1;
  const eventOf = (line: string) => {
    const { backend_id, cpu_used, mem_available, mem_limit, mem_used, sys_cpu } = metricsRecord.parse(JSON.parse(line));
    const data = JSON.stringify({ backend_id, cpu_used, mem_available, mem_limit, mem_used, sys_cpu });
    return { id: next++, data };
  };
  await streamFromNode(api, { backend, wanted: { about: 'metrics', backend: backend.id }, eventOf }, to);
}

interface BackendStream {
  readonly backend: Backend;
  readonly wanted: BackendStreamRequest;
  /** Converts a line of the node's answer to an event. */
  readonly eventOf: (line: string) => { readonly id: number | string; readonly data: string };
}

async function streamFromNode(api: Api, source: BackendStream, { response, signal }: StreamRequest): Promise<void> {
  const { backend, wanted, eventOf } = source;
  const open = async ({ node, live }: Backend) => {
    const hasEnded = wanted.about === 'metrics' && !live;
    return node === undefined || hasEnded ? undefined : await requestStream(api, node, wanted, signal);
  };
  // Before the stream opens, so that a failure is an error response.
  let answer = hasStarted(backend) ? await open(backend) : undefined;
  using stream = api.eventStreams.open(response);
  try {
    if (!hasStarted(backend) && !wanted.storedOnly) answer = await open(await untilStarted(api, backend, signal));
    if (answer) await relay(answer, stream, eventOf, signal);
  } catch (error) {
    if (!signal.aborted) throw error;
    if (wanted.storedOnly) {
      // A client takes a proper end of a stored log as its last line. It reopens a broken stream, or reads why it may not.
      response.destroy();
      return;
    }
  }
  stream.end();
}

async function relay(
  answer: IncomingMessage,
  stream: EventStream,
  eventOf: BackendStream['eventOf'],
  signal: AbortSignal,
): Promise<void> {
  for await (const lines of lineBatchesOf(answer)) {
    for (const { id, data } of lines.map(eventOf)) stream.send(id, data);
    await stream.drained(signal);
  }
}

/** Whether the container runs or has ended. Before, there is nothing to stream. */
function hasStarted({ status, live }: Backend): boolean {
  return !live || rank(status) >= rank('waiting');
}

async function untilStarted(api: Api, backend: Backend, signal: AbortSignal): Promise<Backend> {
  let latest = backend;
  for await (latest of api.watch.follow(backend.id, signal)) if (hasStarted(latest)) return latest;
  signal.throwIfAborted();
  return latest;
}

/** A node answers within milliseconds, or within seconds if its engine is slow. Clients can retry. */
const answerTimeoutMs = 10_000;

/**
 * Requests a stream from a node, through its gateway. The answer fails if the node or the connection fails, or if the signal aborts.
 * Throws `Unavailable` if the node does not answer, and `TooManyRequests`.
 */
async function requestStream(
  api: Api,
  node: string,
  wanted: BackendStreamRequest,
  signal: AbortSignal,
): Promise<IncomingMessage> {
  const document = await api.store.get(nodes, node);
  const gateway = document && nearestGateway(document);
  if (!gateway) throw noAnswer(new Error(`The address of the gateway of the node "${node}" is not known`));
  const late = new AbortController();
  using _limit = api.clock.after(answerTimeoutMs, () => late.abort(new Error('The gateway does not answer in time')));
  try {
    const target = { ...gateway, secret: api.secret, signal: AbortSignal.any([signal, late.signal]) };
    const answer = await linkGet(target, node, backendStreamPath(wanted));
    addAbortSignal(signal, answer);
    if (answer.statusCode === 200) return answer;
    answer.destroy();
    if (answer.statusCode === 429)
      throw new ApiError('TooManyRequests', 'Too many streams of this backend are open, close one of them');
    throw new Error(`The gateway answered ${answer.statusCode}`);
  } catch (error) {
    signal.throwIfAborted();
    throw error instanceof ApiError ? error : noAnswer(error);
  }
}

function noAnswer(cause: unknown): ApiError {
  return new ApiError('Unavailable', 'The node of this backend does not answer, try again in a moment', { cause });
}
