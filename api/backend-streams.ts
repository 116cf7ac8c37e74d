/** Streams of what backends say and use, which their nodes know: from there to the client, as fast as that takes it. */
import type { IncomingMessage } from 'node:http';
import type { Request, Response } from 'express';
import { metricsRecord } from '../contract/backend.ts';
import { logPosition, logRecord } from '../contract/backend-streams.ts';
import type { BackendStreamRequest } from '../contract/backend-streams.ts';
import { lastEventId, openEventStream } from '../core/http/sse.ts';
import type { EventStream } from '../core/http/sse.ts';
import { lineBatchesOf } from '../core/text/lines.ts';
import { rank } from '../model/backend.ts';
import type { Backend } from '../model/backend.ts';
import { askNode } from './ask-node.ts';
import type { Api } from './room.ts';

interface Exchange {
  readonly request: Request;
  readonly response: Response;
  readonly signal: AbortSignal;
}

interface NodeEvent {
  readonly id: number | string;
  readonly data: string;
}

interface BackendStream {
  readonly backend: Backend;
  readonly question: BackendStreamRequest;
  /** Makes an event of a line of the node's answer. */
  readonly eventOf: (line: string) => NodeEvent;
}

/**
 * Streams the log of a backend: what is kept of it (from `Last-Event-ID` on, if the client has seen a part), then each new line
 * until it has ended. An event's ID is its line's place in the log.
 */
export async function streamLog(api: Api, backend: Backend, exchange: Exchange): Promise<void> {
  const after = logPosition.safeParse(exchange.request.headers['last-event-id']).data;
  const eventOf = (text: string) => {
    const { at, line } = logRecord.parse(JSON.parse(text));
    return { id: at, data: line };
  };
  await streamFromNode(api, { backend, question: { about: 'log', backend: backend.id, after }, eventOf }, exchange);
}

/**
 * Streams what a backend uses, every second until it has ended. Nothing is kept; IDs go on counting from `Last-Event-ID`, since
 * every event has one.
 */
export async function streamMetrics(api: Api, backend: Backend, exchange: Exchange): Promise<void> {
  let next = (lastEventId(exchange.request.headers['last-event-id']) ?? -1) + 1;
  const eventOf = (line: string) => {
    const { backend_id, cpu_used, mem_available, mem_limit, mem_used, sys_cpu } = metricsRecord.parse(JSON.parse(line));
    const data = JSON.stringify({ backend_id, cpu_used, mem_available, mem_limit, mem_used, sys_cpu });
    return { id: next++, data };
  };
  await streamFromNode(api, { backend, question: { about: 'metrics', backend: backend.id }, eventOf }, exchange);
}

async function streamFromNode(api: Api, wanted: BackendStream, { response, signal }: Exchange): Promise<void> {
  const { backend, question } = wanted;
  try {
    // Asked first: what cannot be had is refused, as long as nothing is sent.
    const ask = async ({ node, live }: Backend) => {
      const isOver = question.about === 'metrics' && !live;
      return node === undefined || isOver ? undefined : await askNode(api, node, question, signal);
    };
    let answer = hasStarted(backend) ? await ask(backend) : undefined;
    using stream = openEventStream(response, api.clock);
    if (!hasStarted(backend)) answer = await ask(await untilStarted(api, backend, signal));
    if (answer) await relay(answer, stream, wanted.eventOf, signal);
    stream.end();
  } catch (error) {
    if (!signal.aborted) throw error;
    if (response.headersSent) response.end();
    else signal.throwIfAborted();
  }
}

async function relay(
  answer: IncomingMessage,
  stream: EventStream,
  eventOf: BackendStream['eventOf'],
  signal: AbortSignal,
): Promise<void> {
  for await (const lines of lineBatchesOf(answer)) {
    for (const { id, data } of lines.map(eventOf)) stream.send(id, data);
    await stream.taken(signal);
  }
}

/** Whether its container runs, or nothing of it does any more: until then there is nothing to hear of it. */
function hasStarted({ status, live }: Backend): boolean {
  return !live || rank(status) >= rank('waiting');
}

async function untilStarted(api: Api, backend: Backend, signal: AbortSignal): Promise<Backend> {
  let latest = backend;
  for await (latest of api.watch.follow(backend.id, signal)) if (hasStarted(latest)) return latest;
  signal.throwIfAborted();
  return latest;
}
