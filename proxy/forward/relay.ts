import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import { pipeline } from 'node:stream/promises';
import { endEarly } from '../../core/http/linger.ts';
import { ServerResponse, STATUS_CODES } from '../../core/http/node-http.ts';
import type { ErrorBoundary } from '../../core/log/error-boundary.ts';
import type { SessionView } from '../session-view.ts';
import { forwardedTrailers, responseHeaders, withReferrerPolicy } from '../response-headers.ts';

/** Writing this sends only the head. `flushHeaders` would encode the head as UTF-8, but it is Latin-1. */
const nothing = Buffer.alloc(0);

/** The standard reason phrase of a status. A backend's own is ignored by clients, and may contain illegal characters. */
export function reasonOf(status: number): string {
  return STATUS_CODES[status] ?? '';
}

/**
 * Streams a backend's answer to the client. If the backend fails, the client's connection is destroyed, so that a partial answer
 * never looks complete. If the client disconnects, the backend's answer is destroyed. Throws if the head cannot be sent.
 */
export function relay(
  incoming: IncomingMessage,
  response: ServerResponse,
  { view, errorBoundary }: { view: SessionView; errorBoundary: ErrorBoundary },
): void {
  const cut = () => {
    incoming.destroy();
    response.destroy();
  };
  const { statusCode = 0, headers, socket: connection } = incoming;
  assertReadable(statusCode, headers);
  response.writeHead(statusCode, reasonOf(statusCode), withReferrerPolicy(responseHeaders(incoming.rawHeaders, view)));
  // If the answer ends with its connection, Node reports a reset connection as a regular end, too.
  const endsWithConnection = headers['content-length'] === undefined && headers['transfer-encoding'] === undefined;
  const onEnd = () => {
    if (endsWithConnection && connection.errored) {
      response.destroy();
      return;
    }
    const trailers = forwardedTrailers(incoming.rawTrailers);
    if (trailers.length > 0 && response.chunkedEncoding) response.addTrailers(trailers);
  };
  incoming.once('end', errorBoundary.wrap(onEnd, cut));
  // A body that has arrived already is sent in one packet with the head. The head of a stream does not wait for its first event.
  const sendHead = () => {
    if (!response.writableEnded && !response.destroyed) response.write(nothing);
  };
  setImmediate(errorBoundary.wrap(sendHead, cut));
  pipeline(incoming, response, { end: false }).then(
    () => end(response),
    () => void response.destroy(),
  );
}

/** A backend may answer before the client has sent its whole body. A stream of HTTP/2 ends alone. */
function end(response: ServerResponse): void {
  const { req: request } = response;
  if (request.complete || !(response instanceof ServerResponse)) response.end();
  else void endEarly({ request, response });
}

/** Throws if the client could not find the end of an answer: Node accepts a 101 that no request asked for, and any transfer coding. */
function assertReadable(status: number, { 'transfer-encoding': coding }: IncomingHttpHeaders): void {
  if (status < 200) throw new Error(`The backend answers with ${status}`);
  if (coding !== undefined && coding.toLowerCase() !== 'chunked') {
    throw new Error('The backend answers with an unknown transfer coding');
  }
}
