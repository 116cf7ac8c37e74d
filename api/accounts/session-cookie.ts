/** The cookie of a browser's session, and the checks that only our own pages use it. */
import type { IncomingMessage } from 'node:http';
import { sessionCookieName } from '../../contract/people.ts';
import { ApiError } from '../../model/api-error.ts';

const attributes = 'Path=/; Secure; HttpOnly; SameSite=Lax';

const safeMethods = new Set(['GET', 'HEAD', 'OPTIONS']);

/** The secret in the cookie of a request. */
export function sessionCookie(request: IncomingMessage): string | undefined {
  return cookieOf(request, sessionCookieName);
}

/** The header that sets the cookie. */
export function newSessionCookie(secret: string, lifeSeconds: number): string {
  return newCookie(sessionCookieName, secret, lifeSeconds);
}

/** The header that removes the cookie. */
export const noSessionCookie = newCookie(sessionCookieName, '', 0);

/** The value of a cookie of a request: the first one with this name. Browsers send only one. */
export function cookieOf(request: IncomingMessage, wanted: string): string | undefined {
  for (const pair of (request.headers.cookie ?? '').split(';')) {
    const [name, value] = pair.trim().split('=', 2);
    if (name === wanted) return value;
  }
  return undefined;
}

/** The header that sets a cookie that scripts cannot read. */
export function newCookie(name: string, value: string, lifeSeconds: number): string {
  return `${name}=${value}; ${attributes}; Max-Age=${lifeSeconds}`;
}

/**
 * Rejects a request that a page of another origin has sent. Pages of the same site count as foreign, since sessions may have hosts
 * there. A browser that does not send `Sec-Fetch-Site` sends `Origin` with requests that change something. Other clients send neither,
 * and hold no cookies of users. Throws `Forbidden`.
 */
export function assertSameOrigin({ headers }: IncomingMessage, apiUrl: string): void {
  const site = headers['sec-fetch-site'];
  if (site !== undefined) {
    if (site !== 'same-origin' && site !== 'none') throw foreign();
  } else if (headers.origin !== undefined && headers.origin !== new URL(apiUrl).origin) throw foreign();
}

/** Like `assertSameOrigin`, for a request that a cookie authenticates: a request that changes something must name its origin. */
export function assertOwnPage(request: IncomingMessage, apiUrl: string): void {
  assertSameOrigin(request, apiUrl);
  const { headers, method = '' } = request;
  const namesOrigin = headers['sec-fetch-site'] === 'same-origin' || headers.origin !== undefined;
  if (!namesOrigin && !safeMethods.has(method)) throw foreign();
}

function foreign(): ApiError {
  return new ApiError('Forbidden', 'A page of another site has sent this request, which is not allowed');
}
