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
  /** When it was last used, noted every `useNotedEveryMs`; at first, when it was made. */
  readonly usedAt: Date;
}

export const routes: Collection<Route, 'byBackend' | 'byUse'> = {
  name: 'routes',
  indexes: { byBackend: ['backend'], byUse: ['usedAt'] },
};

/** A route in use is written once a day, which costs nothing, and most are used for less. */
export const useNotedEveryMs = 24 * 60 * 60 * 1000;

/**
 * A route that no request used for this long is deleted: a backend that runs for years, and is connected to every second, would
 * otherwise have millions. A month is longer than any page stays open without a request.
 */
export const unusedRouteMs = 30 * 24 * 60 * 60 * 1000;

/** Routes stay for this long after their backend has ended, for the readiness page that says why it did not start. */
export const endedRouteMs = 60 * 60 * 1000;

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
    usedAt: now,
  };
}

/** Notes that a route is used. Unchanged if that was noted a short while ago. */
export function withUse(route: Route, now: Date): Route {
  return now.getTime() - route.usedAt.getTime() < useNotedEveryMs ? route : { ...route, usedAt: now };
}
