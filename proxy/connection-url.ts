import { connectionTokenPattern } from '../model/route.ts';

/** The parts of a connection URL. Nothing is decoded or normalised, so the path reaches the backend byte for byte. */
export interface ConnectionUrl {
  readonly token: string;
  /** Everything after the token, including the query. It begins with a slash if the URL has one there. */
  readonly rest: string;
}

const slash = '/'.charCodeAt(0);
const questionMark = '?'.charCodeAt(0);

/** Parses a request target of the form `/<token>`, `/<token>/…` or `/<token>?…`. Returns `undefined` for any other form. */
export function parseConnectionUrl(target: string): ConnectionUrl | undefined {
  if (target.charCodeAt(0) !== slash) return undefined;
  const end = endOfFirstSegment(target);
  const token = target.slice(1, end);
  return connectionTokenPattern.test(token) ? { token, rest: target.slice(end) } : undefined;
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
