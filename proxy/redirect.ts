import type { RequestContext } from './request-context.ts';

/**
 * Redirects a client: 307 keeps the method, 303 changes it to GET. The redirect must not be cached, because the URL works only as long
 * as its session.
 */
export function redirect({ request, response }: RequestContext, status: 303 | 307, location: string): void {
  response.writeHead(status, {
    location,
    'content-length': 0,
    'cache-control': 'no-store',
    'referrer-policy': 'no-referrer',
    ...(!request.complete && { connection: 'close' }),
  });
  response.end();
}
