/** Connection URLs, in the form of the request, or else of the service or the platform. */
import type { IncomingMessage } from 'node:http';
import type { UrlForm } from '../contract/connect.ts';
import { ApiError } from '../model/api-error.ts';
import { readyPath } from '../model/ready-url.ts';
import type { SessionAddress } from '../model/ready-url.ts';
import { labelOfToken, tokenOfHost } from '../model/session-host.ts';
import type { ServiceSettings } from '../model/service-settings.ts';
import type { Api, PublicUrls } from './dependencies.ts';

/** The form of the URL of a connect. Throws `BadRequest` if the request asks for a form that the platform does not have. */
export function chosenForm(
  { urls, rules }: Pick<Api, 'urls' | 'rules'>,
  requested: UrlForm | undefined,
  settings: ServiceSettings | undefined,
): UrlForm {
  if (requested === 'host') assertHostForm(urls);
  // The platform may have lost its domain since the setting was made.
  return urls.sessions === undefined ? 'path' : (requested ?? settings?.urlForm ?? rules.urlForm);
}

/** Throws `BadRequest` if the platform has no session domain. */
export function assertHostForm({ sessions }: PublicUrls): void {
  if (sessions !== undefined) return;
  const problem = 'url_form: This platform has no session domain, set BERTH_SESSION_DOMAIN, or use path';
  throw new ApiError('BadRequest', problem);
}

/** The connection URL of a token. */
export function connectionUrl({ proxy, sessions }: PublicUrls, { token, form }: SessionAddress): string {
  if (form === 'path' || sessions === undefined) return `${proxy}/${token}/`;
  return `${sessions.replace('*', labelOfToken(token))}/`;
}

/** The URL of the readiness page of a connection. */
export function readyUrl(urls: PublicUrls, backend: string, address: SessionAddress): string {
  return `${urls.api}${readyPath(backend, address)}`;
}

/**
 * Returns a function that rejects requests to the API under the host of a session. Cookies apply to all ports of a host, so the
 * application there could set those of the API.
 *
 * @param sessions - the URL of sessions with their own hosts, if there are any
 */
export function hostCheck(sessions: string | undefined): (request: IncomingMessage) => void {
  if (sessions === undefined) return () => {};
  const domain = new URL(sessions.replace('*.', '')).hostname;
  return ({ headers: { host = '' } }) => {
    if (tokenOfHost(host, domain) === undefined) return;
    throw new ApiError('MisdirectedRequest', 'This is the host of a session, use the host of the API');
  };
}
