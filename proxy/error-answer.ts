import { STATUS_CODES } from 'node:http';
import type { IncomingMessage, OutgoingHttpHeaders, ServerResponse } from 'node:http';
import { proxyErrorHeader, proxyErrors } from '../contract/proxy-errors.ts';
import type { ProxyErrorCode } from '../contract/proxy-errors.ts';
import { requestId } from '../core/http/request-id.ts';
import { errorPage, errorPagePolicy } from './error-page.ts';

/** Most stores and buses are back within seconds. */
const retryAfterSeconds = 2;

/** Answers with one of the proxy's own errors: a page for browsers, JSON for others. Cuts what has been begun otherwise. */
export function answerError(request: IncomingMessage, response: ServerResponse, code: ProxyErrorCode): void {
  if (response.headersSent) {
    response.destroy();
    return;
  }
  const { status, message } = proxyErrors[code];
  const id = requestId(request);
  const html = request.headers.accept?.includes('text/html') ?? false;
  const body = html ? errorPage(code, id) : JSON.stringify({ error: { code, message, status, id } });
  const headers: OutgoingHttpHeaders = {
    [proxyErrorHeader]: code,
    'content-type': html ? 'text/html; charset=utf-8' : 'application/json',
    'content-length': Buffer.byteLength(body),
    'cache-control': 'no-store',
    vary: 'accept',
    'referrer-policy': 'no-referrer',
    'x-content-type-options': 'nosniff',
    'x-request-id': id,
    ...(html && { 'content-security-policy': errorPagePolicy }),
    ...(code === 'unavailable' && { 'retry-after': String(retryAfterSeconds) }),
    // Nobody reads what is still to come of the request; and a proxy that closes is not asked twice on one connection.
    ...((!request.complete || code === 'unavailable') && { connection: 'close' }),
  };
  // With a reason: an answer that could not be sent may have left its own.
  response.writeHead(status, STATUS_CODES[status], headers);
  response.end(body);
}
