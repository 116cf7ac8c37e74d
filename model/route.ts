/** Routes: what a connection token stands for. */
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
  readonly createdAt: Date;
}

export const routes: Collection<Route, 'byBackend'> = { name: 'routes', indexes: { byBackend: ['backend'] } };

/** The form of a connection token: 256 bits in base64url. */
export const connectionTokenPattern = /^[A-Za-z0-9_-]{43}$/;

/** A route for a new connection token. */
export function newRoute(
  about: { token: string; backend: string; user?: string | undefined; auth?: Record<string, unknown> | undefined },
  now: Date,
): Route {
  return {
    id: hashToken(about.token),
    backend: about.backend,
    ...(about.user !== undefined && { user: about.user }),
    ...(about.auth !== undefined && { userData: asciiJson(about.auth) }),
    createdAt: now,
  };
}
