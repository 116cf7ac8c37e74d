/**
 * The URL of a backend that its container reads from its environment: the host URL that clients without `user` and `auth` get. An
 * application that needs to be configured with its own URL uses it.
 */
import type { ConnectRequest, UrlForm } from '../../contract/connect.ts';
import type { Backend, BackendPlan } from '../../model/backend.ts';
import { connectionToken } from '../../model/route.ts';
import type { Api } from '../dependencies.ts';
import { connectionUrl } from '../session-url.ts';
import { addFirstRoute, routedTo } from './routes.ts';

/** The variables with the URL. A request or a service may set them itself. */
const variables = ['SESSION_BACKEND_URL', 'BERTH_URL'];

/** A backend before its document is made. */
export interface Spawned extends Pick<BackendPlan, 'id' | 'account' | 'service' | 'key' | 'fencingToken'> {
  readonly env: BackendPlan['env'];
}

/** The variables of a backend that must be encrypted, because the URL contains a connection token; none without a session domain. */
export function baseUrlVariables(
  { urls, tokenFor }: Pick<Api, 'urls' | 'tokenFor'>,
  spawned: Spawned,
): Readonly<Record<string, string>> {
  if (urls.sessions === undefined) return {};
  const token = connectionToken(tokenFor, routedTo(spawned, {}, 'host'));
  const url = connectionUrl(urls, { token, form: 'host' });
  const unset = variables.filter((name) => !Object.hasOwn(spawned.env ?? {}, name));
  return Object.fromEntries(unset.map((name) => [name, url]));
}

/** Writes the route of the URL, unless it is the route of the request that spawns the backend. */
export async function addBaseRoute(
  api: Api,
  backend: Backend,
  { request: { user, auth }, form }: { readonly request: ConnectRequest; readonly form: UrlForm },
): Promise<void> {
  if (api.urls.sessions === undefined) return;
  const isOfRequest = user === undefined && auth === undefined && (form === 'host' || backend.key === undefined);
  if (!isOfRequest) await addFirstRoute(api, routedTo(backend, {}, 'host'));
}
