/** Readiness pages: `/ready/{backend}/{token}/`, and beside it the stream of events that the page follows. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { parse as parseQuery } from 'node:querystring';
import type { Express } from 'express';
import { backends } from '../../model/backend.ts';
import type { Backend } from '../../model/backend.ts';
import { connectionTokenPattern, routeId, routes } from '../../model/route.ts';
import { pathParameter, urlBelow } from '../../model/ready-url.ts';
import { tokenOfLabel } from '../../model/session-host.ts';
import type { Api } from '../dependencies.ts';
import { commonAddress } from '../connect/older-plan.ts';
import { connectionUrl, readyUrl } from '../session-url.ts';
import type { SessionAddress } from '../../model/ready-url.ts';
import { detailsFor } from './details.ts';
import { sendPage } from './page.ts';
import { noSession, progressOf } from './progress.ts';

export function mountReadyPage(app: Express, api: Api): void {
  app.get('/ready/:backend/:token', async (request, response) => {
    const { backend: id, token: session } = request.params;
    const address = addressOf(session);
    const backend = address && (await backendOf(api, address));
    if (!backend) return sendPage(response, 404, { progress: noSession });
    if (backend.id === id) return await answerReadyPage(api, { request, response }, backend, address);
    if (address.form === 'host')
      return redirect(response, `${readyUrl(api.urls, backend.id, address)}${queryOf(request)}`);
    return sendPage(response, 404, { progress: noSession });
  });

  app.get('/ready/:backend/:token/events', async (request, response) => {
    const { backend: id, token: session } = request.params;
    const address = addressOf(session);
    const backend = address && (await backendOf(api, address));
    if (backend?.id !== id) return sendPage(response, 404, { progress: noSession });
    return await streamProgress(api, id, response);
  });
}

interface PageRequest {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
}

/** The page of a backend that was spawned through v1 or the earliest form, where its ID is enough to find it. */
export async function answerOlderReadyPage(api: Api, page: PageRequest, id: string): Promise<void> {
  const found = await api.store.get(backends, id);
  if (found?.generation === undefined) return sendPage(page.response, 404, { progress: noSession });
  return await answerReadyPage(api, page, found, commonAddress(api, found));
}

async function answerReadyPage(api: Api, page: PageRequest, backend: Backend, address: SessionAddress): Promise<void> {
  const { response } = page;
  const url = urlBelow(connectionUrl(api.urls, address), parseQuery(queryOf(page.request).slice(1))[pathParameter]);
  if (backend.status === 'ready') return redirect(response, url);
  const progress = progressOf(backend, api.pullProgresses.of(backend.id));
  const path = readyUrl(api.urls, backend.id, address).slice(api.urls.api.length);
  if (!backend.live) {
    const details = await detailsFor(api, backend, page);
    return sendPage(response, 410, { progress, ...(details && { details }), path });
  }
  // Only the path: the page may be open under another name of this host, and follows the events under that name.
  const eventsUrl = new URL(`${api.urls.api}${path}events`).pathname;
  return sendPage(response, 200, { progress, path, following: { eventsUrl, url } });
}

/** The query of a request, byte for byte. */
function queryOf({ url = '' }: IncomingMessage): string {
  const at = url.indexOf('?');
  return at < 0 ? '' : url.slice(at);
}

function redirect(response: ServerResponse, url: string): void {
  // The path of the application may have characters that a header must not have.
  response.writeHead(303, { location: new URL(url).href, 'cache-control': 'no-store' }).end();
}

/** Streams what the page shows: an event after each change of the backend, and while its image is pulled. */
async function streamProgress(api: Api, id: string, response: ServerResponse): Promise<void> {
  const signal = api.openRequests.signalOf(response);
  using stream = api.eventStreams.open(response);
  let latest: Backend | undefined;
  let next = 0;
  const send = () => {
    // Skips events while the client does not read, to bound memory.
    if (!latest || response.writableNeedDrain) return;
    const progress = progressOf(latest, api.pullProgresses.of(id));
    stream.send(next++, JSON.stringify({ status: latest.status, ...progress }));
  };
  using _pull = api.pullProgresses.listen(id, send);
  for await (latest of api.watch.follow(id, signal)) {
    await stream.drained(signal).catch(() => {});
    send();
  }
  stream.end();
}

/** What a readiness URL names: a connection token, or the label of a session's host. */
function addressOf(session: string): SessionAddress | undefined {
  if (connectionTokenPattern.test(session)) return { token: session, form: 'path' };
  const token = tokenOfLabel(session);
  return token === undefined ? undefined : { token, form: 'host' };
}

/** The backend to which a connection URL leads. A host URL may lead to a later holder of its key. */
async function backendOf(api: Api, { token }: SessionAddress): Promise<Backend | undefined> {
  const route = await api.store.get(routes, routeId(token));
  return route && (await api.store.get(backends, route.backend));
}
