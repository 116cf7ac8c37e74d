import { timingSafeEqual } from 'node:crypto';
import { hashToken } from '../model/access-token.ts';
import type { Route } from '../model/route.ts';

/** Whether the `Authorization` header of a request has the bearer token that its route requires. Upgrades are requests, too. */
export function hasBearerToken(authorization: string | undefined, { bearerHash }: Pick<Route, 'bearerHash'>): boolean {
  if (bearerHash === undefined) return true;
  const [, token] = /^bearer +(\S+) *$/i.exec(authorization ?? '') ?? [];
  return token !== undefined && timingSafeEqual(Buffer.from(hashToken(token)), Buffer.from(bearerHash));
}
