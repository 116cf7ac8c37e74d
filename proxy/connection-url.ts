import type { UrlForm } from '../contract/connect.ts';
import { connectionTokenPattern } from '../model/route.ts';
import { tokenOfHost } from '../model/session-host.ts';

/** The parts of a connection URL. Nothing is decoded or normalised, so the path reaches the backend byte for byte. */
export interface ConnectionUrl {
  readonly token: string;
  /** Where the token stands: as a label in the host, or at the start of the path. */
  readonly form: UrlForm;
  /** The application's path, including the query. It begins with a slash, unless the URL ends with the token. */
  readonly rest: string;
}

const slash = '/'.charCodeAt(0);
const questionMark = '?'.charCodeAt(0);

/**
 * Parses a request to `<label>.<session domain>`, where every path is the application's, or else a request target of the form
 * `/<token>`, `/<token>/…` or `/<token>?…`. Returns `undefined` for any other form.
 */
export function parseConnectionUrl(
  target: string,
  { host = '', sessionDomain }: { readonly host?: string | undefined; readonly sessionDomain?: string | undefined },
): ConnectionUrl | undefined {
  if (target.charCodeAt(0) !== slash) return undefined;
  const labelled = sessionDomain === undefined ? undefined : tokenOfHost(host, sessionDomain);
  if (labelled !== undefined) return { token: labelled, form: 'host', rest: target };
  const end = endOfFirstSegment(target);
  const token = target.slice(1, end);
  return connectionTokenPattern.test(token) ? { token, form: 'path', rest: target.slice(end) } : undefined;
}

/** The redirect target for `/<token>` and `/<token>?query`, relative, so that it is right behind any prefix; else `undefined`. */
export function redirectOf({ token, rest }: ConnectionUrl): string | undefined {
  return rest.charCodeAt(0) === slash ? undefined : `${token}/${rest}`;
}

function endOfFirstSegment(target: string): number {
  for (let i = 1; i < target.length; i += 1) {
    const code = target.charCodeAt(i);
    if (code === slash || code === questionMark) return i;
  }
  return target.length;
}
