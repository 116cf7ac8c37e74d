/**
 * The platform's own credentials. A browser sends a host's cookies to every port of it, so a dashboard beside the proxy would
 * hand its session to every container: such credentials stop here, in both directions.
 */

/**
 * Cookies whose names begin with the platform's name are the platform's. A browser sends what it was given without a name
 * (`=name=value`) as if it had that name.
 */
const platformCookie = /^[\s=]*(?:__(?:host|secure)-)?berth[-_]/i;

/** A platform access token, alone or as the password of an account. */
const platformAuthorization = /^\s*bearer\s+berth_/i;

/** A `Cookie` header without the platform's cookies; `undefined` if none is left. */
export function withoutPlatformCookies(cookies: string): string | undefined {
  if (!/berth/i.test(cookies)) return cookies;
  const others = cookies.split(';').filter((cookie) => !platformCookie.test(cookie));
  return others.length === 0 ? undefined : others.join(';').trim();
}

/** Whether an `Authorization` header carries a platform access token. */
export function isPlatformAuthorization(value: string): boolean {
  return platformAuthorization.test(value);
}

/** Whether a `Set-Cookie` header would set one of the platform's cookies. */
export function setsPlatformCookie(value: string): boolean {
  return platformCookie.test(value);
}
