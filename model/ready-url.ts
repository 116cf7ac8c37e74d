/** URLs of readiness pages, which the API serves and to which the proxy redirects browsers. */
import type { UrlForm } from '../contract/connect.ts';
import { labelOfToken } from './session-host.ts';

/** The parts of a connection URL. */
export interface SessionAddress {
  readonly token: string;
  readonly form: UrlForm;
}

/** The parameter of a readiness page that names the path in the application to which it leads. */
export const pathParameter = 'path';

/** The path of the readiness page of a connection. It names the session as the connection URL does, by token or by label. */
export function readyPath(backend: string, { token, form }: SessionAddress): string {
  return `/ready/${backend}/${form === 'host' ? labelOfToken(token) : token}/`;
}

/** The path of a readiness page that leads to a path of the application, which may have a query. */
export function readyPathTo(backend: string, address: SessionAddress, path: string): string {
  const query = path === '/' ? '' : `?${new URLSearchParams({ [pathParameter]: path }).toString()}`;
  return `${readyPath(backend, address)}${query}`;
}

/** The URL of a path below a connection URL. Returns the connection URL itself for anything else, such as a path that leads out of it. */
export function urlBelow(connectionUrl: string, path: unknown): string {
  if (typeof path !== 'string' || !path.startsWith('/') || !URL.canParse(connectionUrl)) return connectionUrl;
  const joined = `${connectionUrl.replace(/\/$/, '')}${path}`;
  const { href } = new URL(connectionUrl);
  return URL.canParse(joined) && new URL(joined).href.startsWith(href) ? joined : connectionUrl;
}
