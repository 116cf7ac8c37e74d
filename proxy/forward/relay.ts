import type { IncomingMessage, ServerResponse } from 'node:http';
import { pipeline } from 'node:stream';
import { passedTrailers, responseHeaders } from '../response-headers.ts';

/** Writing this sends the head and nothing else. `flushHeaders` would write the head as UTF-8, which it is not. */
const nothing = Buffer.alloc(0);

/**
 * Carries a backend's answer to the client, as it comes. A backend that breaks off cuts the client, so that half an answer
 * never looks whole; a client that leaves lets go of the backend. Throws if the head cannot be sent on.
 */
export function relay(incoming: IncomingMessage, response: ServerResponse): void {
  response.writeHead(incoming.statusCode ?? 0, incoming.statusMessage ?? '', responseHeaders(incoming.rawHeaders));
  // Node takes every end of the connection for the end of an answer that has no other, also when it was reset.
  const { headers, socket: connection } = incoming;
  const lastsUntilClose = headers['content-length'] === undefined && headers['transfer-encoding'] === undefined;
  incoming.once('end', () => {
    if (lastsUntilClose && connection.errored) {
      response.destroy();
      return;
    }
    const trailers = passedTrailers(incoming.rawTrailers);
    if (trailers.length > 0 && response.chunkedEncoding) response.addTrailers(trailers);
  });
  // A body that is there already goes in one packet with the head; a stream's head does not wait for its first event.
  setImmediate(() => {
    if (!response.writableEnded && !response.destroyed) response.write(nothing);
  });
  pipeline(incoming, response, (error) => {
    if (error) response.destroy();
  });
}
