/** Interim answers (1xx), which a proxy forwards (RFC 9110, section 15.2): early hints, the progress of long work, resumed uploads. */
import type { ClientRequest, InformationEvent, ServerResponse } from 'node:http';
import type { StreamResponse } from '../../core/http/http2/stream-response.ts';
import type { ErrorBoundary } from '../../core/log/error-boundary.ts';
import { responseHeaders } from '../response-headers.ts';
import type { SessionView } from '../session-view.ts';
import { reasonOf } from './relay.ts';

/**
 * Whether a client gets an interim answer with this status. 100 concerns the connection to the backend alone, since the proxy answers
 * `Expect` itself, and 101 is no interim answer.
 */
export function isForwardedInterim(status: number): boolean {
  return status > 101 && status < 200;
}

/** Sends a client the interim answers of a backend. Each is small, and their number is limited, so nothing waits for the client. */
export function relayInterim(
  outgoing: ClientRequest,
  response: ServerResponse,
  { view, errorBoundary }: { view: SessionView; errorBoundary: ErrorBoundary },
): void {
  const onInformation = ({ statusCode, rawHeaders }: InformationEvent) => {
    // HTTP/1.0 has no interim answers.
    if (!isForwardedInterim(statusCode) || response.headersSent || response.req.httpVersion !== '1.1') return;
    const headers = responseHeaders(rawHeaders, view);
    if (canWriteInterim(response)) response.writeInterim(statusCode, headers);
    else response.socket?.write(interimHead(statusCode, headers), 'latin1');
  };
  outgoing.on(
    'information',
    errorBoundary.wrap(onInformation, () => outgoing.destroy()),
  );
}

/** Whether a response can send interim answers itself, as HTTP/2 responses can. */
function canWriteInterim(response: object): response is Pick<StreamResponse, 'writeInterim'> {
  return 'writeInterim' in response;
}

function interimHead(status: number, headers: readonly string[]): string {
  let head = `HTTP/1.1 ${status} ${reasonOf(status)}\r\n`;
  for (let i = 0; i + 1 < headers.length; i += 2) {
    // An interim answer has no content, and so no length.
    if (headers[i]?.toLowerCase() !== 'content-length') head += `${headers[i]}: ${headers[i + 1]}\r\n`;
  }
  return `${head}\r\n`;
}
