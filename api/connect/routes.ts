/** Writes the routes of connection URLs. */
import type { ConnectRequest, UrlForm } from '../../contract/connect.ts';
import { routeMoved } from '../../contract/messages.ts';
import { upsert } from '../../core/store/upsert.ts';
import type { Backend } from '../../model/backend.ts';
import { connectionToken, heldKeyOf, movedRoute, newRoute, routes } from '../../model/route.ts';
import type { RoutedUser } from '../../model/route.ts';
import type { Api } from '../dependencies.ts';

/** The backend and the user of a route. In the host form, a route to a backend with a key leads to each later holder of the key. */
export function routedTo(
  backend: Pick<Backend, 'id' | 'account' | 'service' | 'key' | 'fencingToken' | 'bearerHash'>,
  { user, auth }: Pick<ConnectRequest, 'user' | 'auth'>,
  form: UrlForm,
): RoutedUser {
  const held = form === 'host' ? heldKeyOf(backend) : undefined;
  return { backend: backend.id, user, auth, bearerHash: backend.bearerHash, held };
}

/** Writes a route, unless an earlier connect wrote the same one, and returns its connection token. */
export async function addRoute(api: Api, routed: RoutedUser, now: Date): Promise<string> {
  const token = connectionToken(api.tokenFor, routed);
  const route = newRoute(token, routed);
  const known = await api.store.get(routes, route.id);
  if (known && movedRoute(known, route, now) === known) return token;
  let written = false;
  await upsert(api.store, routes, route.id, (current) => {
    const result = movedRoute(current, route, now);
    written = result !== current;
    return result;
  });
  // A client may have used the token of a key before, so a proxy may remember another backend, or that there is no route. Proxies read
  // the route again. If the bus loses the message, they find the move in the store within a second.
  if (written && route.fencingToken !== undefined) await api.bus.publish(routeMoved, { route: route.id });
  return token;
}

/** Writes a route of a backend that has none yet, and returns its connection token. */
export async function addFirstRoute(api: Api, routed: RoutedUser): Promise<string> {
  if (routed.held) return await addRoute(api, routed, await api.store.now());
  const token = connectionToken(api.tokenFor, routed);
  await api.store.insert(routes, newRoute(token, routed));
  return token;
}
