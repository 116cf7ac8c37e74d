import type { Request, Response } from 'express';
import { lastEventId, openEventStream } from '../core/http/sse.ts';
import { presentStatus } from './present.ts';
import type { Api } from './room.ts';

/**
 * Streams the statuses of a backend: its history (from `Last-Event-ID` on, if the client has seen a part), then each new
 * one, until it has ended. An event's ID is its position in the history.
 */
export async function streamStatuses(
  api: Api,
  backend: string,
  exchange: { request: Request; response: Response; signal: AbortSignal },
): Promise<void> {
  using stream = openEventStream(exchange.response, api.clock);
  let next = (lastEventId(exchange.request.headers['last-event-id']) ?? -1) + 1;
  for await (const { history } of api.watch.follow(backend, exchange.signal)) {
    for (const entry of history.slice(next)) stream.send(next++, JSON.stringify(presentStatus(entry)));
  }
  stream.end();
}
