/** Readiness pages: `/ready/{backend}/{token}/`, and beside it the stream of events that the page follows. */
import type { Express, Request, Response } from 'express';
import { openEventStream } from '../../core/http/sse.ts';
import { hashToken } from '../../model/access-token.ts';
import { backends } from '../../model/backend.ts';
import type { Backend } from '../../model/backend.ts';
import { connectionTokenPattern, routes, tokenSource } from '../../model/route.ts';
import type { Api } from '../dependencies.ts';
import { connectionUrl } from '../present.ts';
import { detailsFor } from './details.ts';
import { sendPage } from './page.ts';
import { noSession, progressOf } from './progress.ts';

export function mountReadyPage(app: Express, api: Api): void {
  app.get('/ready/:backend/:token', async (request, response) => {
    const { backend: id, token } = request.params;
    await answerReadyPage(api, { request, response }, await backendOf(api, id, token), token);
  });

  app.get('/ready/:backend/:token/events', async (request, response) => {
    const { backend: id, token } = request.params;
    if (!(await backendOf(api, id, token))) return sendPage(response, 404, { progress: noSession });
    return await streamProgress(api, id, response);
  });
}

interface PageRequest {
  readonly request: Request;
  readonly response: Response;
}

/** The page of a backend that was spawned through v1 or the earliest form, where its ID is enough to find it. */
export async function answerOlderReadyPage(api: Api, page: PageRequest, id: string): Promise<void> {
  const found = await api.store.get(backends, id);
  const backend = found?.generation === undefined ? undefined : found;
  await answerReadyPage(api, page, backend, api.tokenFor(tokenSource({ backend: id })));
}

async function answerReadyPage(
  api: Api,
  page: PageRequest,
  backend: Backend | undefined,
  token: string,
): Promise<void> {
  const { response } = page;
  if (!backend) return sendPage(response, 404, { progress: noSession });
  const url = connectionUrl(api.urls, token);
  if (backend.status === 'ready') return response.setHeader('cache-control', 'no-store').redirect(303, url);
  const progress = progressOf(backend, api.pullProgresses.of(backend.id));
  const path = `/ready/${backend.id}/${token}/`;
  if (!backend.live) {
    const details = await detailsFor(api, backend, page);
    return sendPage(response, 410, { progress, ...(details && { details }), path });
  }
  // Only its path: the page may be open under another name of this host, and follows the events under the same one.
  const eventsUrl = new URL(`${api.urls.api}${path}events`).pathname;
  return sendPage(response, 200, { progress, path, following: { eventsUrl, url } });
}

/** Streams what the page shows: an event after each change of the backend, and while its image is pulled. */
async function streamProgress(api: Api, id: string, response: Response): Promise<void> {
  const gone = new AbortController();
  response.once('close', () => gone.abort());
  using stream = openEventStream(response, api.clock);
  let latest: Backend | undefined;
  let next = 0;
  const send = () => {
    // A client that does not read misses steps, not memory of ours.
    if (!latest || response.writableNeedDrain) return;
    const progress = progressOf(latest, api.pullProgresses.of(id));
    stream.send(next++, JSON.stringify({ status: latest.status, ...progress }));
  };
  using _pull = api.pullProgresses.listen(id, send);
  for await (latest of api.watch.follow(id, AbortSignal.any([gone.signal, api.closing]))) {
    await stream.drained(gone.signal);
    send();
  }
  stream.end();
}

/** The backend to which a token leads. */
async function backendOf(api: Api, id: string, token: string): Promise<Backend | undefined> {
  if (!connectionTokenPattern.test(token)) return undefined;
  const route = await api.store.get(routes, hashToken(token));
  return route?.backend === id ? await api.store.get(backends, id) : undefined;
}
