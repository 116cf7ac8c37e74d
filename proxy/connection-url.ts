import { connectionTokenPattern } from '../model/route.ts';

/** A connection URL taken apart. Nothing in it is decoded or normalised: the path reaches the backend byte for byte. */
export interface ConnectionUrl {
  readonly token: string;
  /** What follows the token, query and all: begins with a slash, or is without one only where the URL was. */
  readonly rest: string;
}

const slash = '/'.charCodeAt(0);
const questionMark = '?'.charCodeAt(0);

/** Takes a request target of the form `/<token>`, `/<token>/…` or `/<token>?…` apart; `undefined` for every other form. */
export function parseConnectionUrl(target: string): ConnectionUrl | undefined {
  if (target.charCodeAt(0) !== slash) return undefined;
  const end = endOfFirstSegment(target);
  const token = target.slice(1, end);
  return connectionTokenPattern.test(token) ? { token, rest: target.slice(end) } : undefined;
}

/** Where `/<token>` and `/<token>?query` redirect to, relative, so that it holds behind any prefix; `undefined` for others. */
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
