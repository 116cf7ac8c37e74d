/**
 * The cookie of a browser in which a user has logged in before (a device cookie, as OWASP calls it). It proves only that: the attempts
 * of this browser are then counted separately.
 */
import { randomBytes, timingSafeEqual } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import type { Api } from '../dependencies.ts';
import { cookieOf, newCookie } from './session-cookie.ts';

const cookieName = '__Host-berth-device';

/** A year: the cookie outlasts a leave of some months. Each log-in renews it. */
const lifeSeconds = 365 * 24 * 60 * 60;

const valuePattern = /^([\w-]{22})\.([\w-]{43})$/;

type Devices = Pick<Api, 'deviceProof'>;

/** The ID of the browser, if the user has logged in there before. */
export function knownDevice(api: Devices, request: IncomingMessage, user: string): string | undefined {
  const [, id = '', proof = ''] = valuePattern.exec(cookieOf(request, cookieName) ?? '') ?? [];
  if (id === '') return undefined;
  const isProven = timingSafeEqual(Buffer.from(proof), Buffer.from(api.deviceProof(`${id} ${user}`)));
  return isProven ? id : undefined;
}

/** The `Set-Cookie` header with which a browser can later prove that the user has logged in there. */
export function deviceCookie(api: Devices, request: IncomingMessage, user: string): string {
  const id = knownDevice(api, request, user) ?? randomBytes(16).toString('base64url');
  return newCookie(cookieName, `${id}.${api.deviceProof(`${id} ${user}`)}`, lifeSeconds);
}
