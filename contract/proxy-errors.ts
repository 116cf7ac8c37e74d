/** Errors of the proxy itself. The header `x-berth-error: <code>` distinguishes them from the application's. */
interface ProxyErrorEntry {
  readonly status: number;
  readonly message: string;
}

export const proxyErrors = {
  'not-found': { status: 404, message: 'There is no session at this URL' },
  unauthorized: { status: 401, message: 'This session needs a bearer token, send it with each request' },
  gone: { status: 410, message: 'This session has ended, request a new connection URL' },
  'not-started': { status: 410, message: 'This session ended before it was ready, request a new connection URL' },
  'backend-unreachable': { status: 502, message: 'The session does not answer' },
  starting: { status: 503, message: 'The session is still starting, try again in a moment' },
  'not-ready': { status: 504, message: 'The session did not become ready in time' },
  unavailable: { status: 503, message: 'The platform cannot look up this session now, try again in a moment' },
  'bad-request': { status: 400, message: 'The request is malformed' },
} as const satisfies Record<string, ProxyErrorEntry>;

export type ProxyErrorCode = keyof typeof proxyErrors;

/** The header that carries the code. */
export const proxyErrorHeader = 'x-berth-error';
