/** Routes: the backend and the headers of a connection token. */
import { asciiJson } from '../contract/connect.ts';
import type { Collection } from '../core/store/store.ts';
import { hashToken } from './access-token.ts';
import type { Backend } from './backend.ts';
import { idTimeLength } from './ids.ts';
import { serviceId } from './service.ts';

export interface Route {
  /** `routeId` of its connection token. */
  readonly id: string;
  readonly backend: string;
  /** The value of `x-verified-username`. */
  readonly user?: string;
  /** The value of `x-verified-user-data`: JSON in ASCII. */
  readonly userData?: string;
  /** The hash of the bearer token that each request needs. Absent: requests need none. A copy of the backend's. */
  readonly bearerHash?: string;
  /** Only of a route that leads to the holder of a key, whichever backend that is: the fencing token of this holder. */
  readonly fencingToken?: number;
  /** When it began to lead to another backend than before. Absent: it never did. */
  readonly movedAt?: Date;
}

export const routes: Collection<Route, 'byBackend' | 'byMove'> = {
  name: 'routes',
  indexes: { byBackend: ['backend'], byMove: { fields: ['movedAt'], omitsNull: true } },
};

/** Routes stay for this long after their backend has ended, for the readiness page that says why it did not start. */
export const endedRouteMs = 60 * 60 * 1000;

/** The form of a connection token: 256 bits in base64url. */
export const connectionTokenPattern = /^[A-Za-z0-9_-]{43}$/;

/** The backend of a route, and the user for its headers. */
export interface RoutedUser {
  readonly backend: string;
  readonly user?: string | undefined;
  readonly auth?: Readonly<Record<string, unknown>> | undefined;
  readonly bearerHash?: string | undefined;
  /** Only for a route that leads to the holder of a key, whichever backend that is. */
  readonly held?: HeldKey | undefined;
}

/** A key of a service, as a backend holds it. */
export interface HeldKey {
  /** `<account>/<service>`. */
  readonly service: string;
  readonly key: string;
  readonly fencingToken: number;
}

/** The key that a backend holds; `undefined` if it was spawned without one. */
export function heldKeyOf({
  account,
  service,
  key,
  fencingToken,
}: Pick<Backend, 'account' | 'service' | 'key' | 'fencingToken'>): HeldKey | undefined {
  if (key === undefined || fencingToken === undefined) return undefined;
  return { service: serviceId(account, service), key, fencingToken };
}

/** The route of a connection token. */
export function newRoute(token: string, { backend, user, auth, bearerHash, held }: RoutedUser): Route {
  return {
    id: routeId(token),
    backend,
    ...(user !== undefined && { user }),
    ...(auth !== undefined && { userData: asciiJson(auth) }),
    ...(bearerHash !== undefined && { bearerHash }),
    ...(held && { fencingToken: held.fencingToken }),
  };
}

/**
 * The route of a token after a connect: the existing one, unless the key has a newer holder. So a slow connect does not move the route
 * back to a backend that has ended.
 */
export function movedRoute(current: Route | undefined, route: Route, now: Date): Route {
  if (!current) return route;
  return (route.fencingToken ?? 0) > (current.fencingToken ?? 0) ? { ...route, movedAt: now } : current;
}

/**
 * The ID of the route of a connection token: its first characters, which are no secret in most tokens, and its SHA-256 in hexadecimal. So
 * new routes are next to each other, however many old ones are stored.
 */
export function routeId(token: string): string {
  return token.slice(0, idTimeLength) + hashToken(token);
}

/**
 * Derives the connection token of a route. It begins with the time in the ID of its backend, unless it outlives its backend; the other 220
 * bits cannot be guessed.
 */
export function connectionToken(derive: (source: string) => string, routed: RoutedUser): string {
  const token = derive(tokenSource(routed));
  return routed.held ? token : routed.backend.slice(0, idTimeLength) + token.slice(idTimeLength);
}

/**
 * The text from which a connection token is derived: all fields of its route. Connects with the same fields return the same token, so
 * that a backend has one route for each user, however often the user connects. The token of a held key outlives its backend: the next
 * holder gets the same tokens for the same users, and therefore the same origins.
 */
function tokenSource({ backend, user, auth, held }: RoutedUser): string {
  const from = held ? [held.service, held.key] : [backend];
  return JSON.stringify([...from, user ?? null, auth ?? null]);
}
