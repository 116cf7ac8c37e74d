/** A client of session URLs by host. It resolves names below `localhost` itself, as browsers do, because not every system does. */
import { request as send } from 'node:http';
import type { IncomingMessage, OutgoingHttpHeaders } from 'node:http';
import type { LookupFunction } from 'node:net';
import { text } from 'node:stream/consumers';
import { WebSocket } from 'ws';

/** Resolves every name to this machine. */
export const localLookup: LookupFunction = (_host, { all }, done) => {
  if (all) done(null, [{ address: '127.0.0.1', family: 4 }]);
  else done(null, '127.0.0.1', 4);
};

export interface SessionAnswer {
  readonly status: number;
  readonly headers: IncomingMessage['headers'];
  readonly body: string;
}

/** Sends a request to a session, and follows no redirect. */
export async function askSession(
  url: string,
  { method = 'GET', headers = {} }: { readonly method?: string; readonly headers?: OutgoingHttpHeaders } = {},
): Promise<SessionAnswer> {
  const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
  send(url, { method, headers, lookup: localLookup, agent: false })
    .once('response', resolve)
    .once('error', reject)
    .end();
  const response = await promise;
  return { status: response.statusCode ?? 0, headers: response.headers, body: await text(response) };
}

/** Opens a WebSocket to a session. */
export function sessionSocket(url: string): WebSocket {
  return new WebSocket(url.replace(/^http/, 'ws'), { lookup: localLookup });
}
