import { STATUS_CODES } from 'node:http';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { pipeline } from 'node:stream';
import type { LastCatch } from '../../core/log/last-catch.ts';
import { passedTrailers, responseHeaders } from '../response-headers.ts';

/** Writing this sends the head and nothing else. `flushHeaders` would write the head as UTF-8, which it is not. */
const nothing = Buffer.alloc(0);

/** The reason that goes with a status. A backend's own means nothing to a client, and can hold what must not be sent. */
export function reasonOf(status: number): string {
  return STATUS_CODES[status] ?? '';
}

/**
 * Carries a backend's answer to the client, as it comes. A backend that breaks off cuts the client, so that half an answer
 * never looks whole; a client that leaves lets go of the backend. Throws if the head cannot be sent on.
 */
export function relay(
  incoming: IncomingMessage,
  response: ServerResponse,
  { prefix, caught }: { prefix: string; caught: LastCatch },
): void {
  const cut = () => {
    incoming.destroy();
    response.destroy();
  };
  const { statusCode = 0 } = incoming;
  response.writeHead(statusCode, reasonOf(statusCode), responseHeaders(incoming.rawHeaders, prefix));
  // Node takes every end of the connection for the end of an answer that has no other, also when it was reset.
  const { headers, socket: connection } = incoming;
  const lastsUntilClose = headers['content-length'] === undefined && headers['transfer-encoding'] === undefined;
  const onEnd = () => {
    if (lastsUntilClose && connection.errored) {
      response.destroy();
      return;
    }
    const trailers = passedTrailers(incoming.rawTrailers);
    if (trailers.length > 0 && response.chunkedEncoding) response.addTrailers(trailers);
  };
  incoming.once('end', caught.around(onEnd, cut));
  // A body that is there already goes in one packet with the head; a stream's head does not wait for its first event.
  const sendHead = () => {
    if (!response.writableEnded && !response.destroyed) response.write(nothing);
  };
  setImmediate(caught.around(sendHead, cut));
  pipeline(incoming, response, (error) => {
    if (error) response.destroy();
  });
}
