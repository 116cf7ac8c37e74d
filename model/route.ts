/** Routes: the backend and the headers of a connection token. */
import { asciiJson } from '../contract/connect.ts';
import type { Collection } from '../core/store/store.ts';
import { hashToken } from './access-token.ts';

export interface Route {
  /** SHA-256 of the connection token, in hexadecimal. */
  readonly id: string;
  readonly backend: string;
  /** The value of `x-verified-username`. */
  readonly user?: string;
  /** The value of `x-verified-user-data`: JSON in ASCII. */
  readonly userData?: string;
  /** The hash of the bearer token that each request needs. Absent: requests need none. A copy of the backend's. */
  readonly bearerHash?: string;
}

export const routes: Collection<Route, 'byBackend'> = { name: 'routes', indexes: { byBackend: ['backend'] } };

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
}

/** The route of a connection token. */
export function newRoute(token: string, { backend, user, auth, bearerHash }: RoutedUser): Route {
  return {
    id: hashToken(token),
    backend,
    ...(user !== undefined && { user }),
    ...(auth !== undefined && { userData: asciiJson(auth) }),
    ...(bearerHash !== undefined && { bearerHash }),
  };
}

/**
 * What a connection token is derived from: all that its route holds. A connect that asks for the same route returns the same token,
 * so that a backend has as many routes as it has different users, however often and however long they connect.
 */
export function tokenSource({ backend, user, auth }: RoutedUser): string {
  return JSON.stringify([backend, user ?? null, auth ?? null]);
}
