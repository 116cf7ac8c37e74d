/** The API: speaks the service API, shows readiness pages, and ends backends that have no worker. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { JsonBodies } from '../core/http/json-bodies.ts';
import type { Unreadable } from '../core/http/unreadable.ts';
import { openBackendWatch } from '../model/backend-watch.ts';
import { ApiError } from '../model/api-error.ts';
import { newApp } from './app.ts';
import { startOrphanReaper } from './orphan-reaper.ts';
import { explainUnreadable } from './errors.ts';
import { Prefetcher } from './prefetch.ts';
import { mountReadyPage } from './ready-page.ts';
import { Retention } from './retention.ts';
import type { Api, ApiDependencies } from './room.ts';
import { SpawnTimes } from './spawn-times.ts';
import { backendEndpoints } from './v2/backends.ts';
import { connectEndpoints } from './v2/connect.ts';
import { imageArchiveEndpoints } from './v2/image-archives.ts';
import { serviceEndpoints } from './v2/services.ts';

export type { ApiDependencies } from './room.ts';

/** Clients that follow a backend miss a change for this long at most, when its message was lost. */
const lookEveryMs = 5_000;

export interface ApiComponent extends AsyncDisposable {
  /** Answers one request. */
  readonly handle: (request: IncomingMessage, response: ServerResponse) => void;
  /** The body of the answer to what is no request at all. */
  readonly explain: (problem: Unreadable) => object;
}

/** Opens the room. It serves whatever requests it is handed; nothing listens here. Disposing it ends open streams. */
export async function openApi(deps: ApiDependencies): Promise<ApiComponent> {
  await using opening = new AsyncDisposableStack();
  const watch = opening.use(await openBackendWatch({ ...deps, lookEveryMs }));
  opening.use(startOrphanReaper(deps));
  opening.use(new Retention(deps));
  const spawnTimes = opening.use(new SpawnTimes(deps));
  const prefetch = opening.use(new Prefetcher(deps));
  await prefetch.listen();
  const closing = new AbortController();
  opening.defer(() =>
    closing.abort(new ApiError('Unavailable', 'The platform is being stopped, try again in a moment')),
  );
  const api: Api = {
    ...deps,
    watch,
    bodies: new JsonBodies(deps.clock),
    noteSpawn: (service, environment, time) => spawnTimes.note(service, environment, time),
    prefetch: (service, isMeant) => prefetch.begin(service, isMeant),
    closing: closing.signal,
  };
  const pages = { mount: mountReadyPage };
  const app = newApp(api, [
    ...connectEndpoints,
    ...backendEndpoints,
    ...serviceEndpoints,
    ...imageArchiveEndpoints,
    pages,
  ]);
  const owned = opening.move();
  return {
    handle: (request, response) => void app(request, response),
    explain: explainUnreadable(deps.log),
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}
