/** The registry as a whole: what is around every request, and what runs beside them. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { requestId } from '../core/http/request-id.ts';
import type { Unreadable } from '../core/http/unreadable.ts';
import type { Log } from '../core/log/log.ts';
import { answerError, errorBody } from './http/answer.ts';
import { authorize } from './http/caller.ts';
import { openCollector } from './gc/collector.ts';
import type { Collector } from './gc/collector.ts';
import type { Exchange, RegistryContext, RegistryDeps } from './context.ts';
import { RegistryError, registryErrors } from './errors.ts';
import type { RegistryErrorName } from './errors.ts';
import { openRegistryMetrics } from './metrics.ts';
import type { RegistryMetrics } from './metrics.ts';
import { AccountQuotas } from './quota/account-quotas.ts';
import { Quota } from './quota/quota.ts';
import { RateLimits } from './access/rate-limits.ts';
import { asRegistryError, isLeaving } from './refusals.ts';
import type { FoundRoute, PathParameters } from './http/request-target.ts';
import { findRoute } from './http/routes.ts';
import type { Route } from './http/routes.ts';
import { PullWatch } from './http/pull-watch.ts';
import { BusyUploads } from './content/busy-uploads.ts';

export interface Registry extends AsyncDisposable {
  /** Answers one request to the registry: `/v2/…` and `/token`. Rejects only for an error of ours that could not be answered. */
  handle(request: IncomingMessage, response: ServerResponse): Promise<void>;
  /** The body of the answer to what is no request at all. */
  explain(problem: Unreadable): object;
  /** Collects garbage, on its schedule and when it is asked to. */
  readonly collector: Collector;
  /** What accounts store and may store: one figure for all of this process that takes bytes. */
  readonly quota: Quota;
  /** What accounts store and may store, for whoever runs the platform. */
  readonly quotas: AccountQuotas;
}

const unreadable: Readonly<Record<Unreadable, RegistryErrorName>> = {
  malformed: 'request-malformed',
  'head-too-slow': 'head-too-slow',
  'head-too-large': 'head-too-large',
};

/** A connection on which nothing moves for this long is dead or an attack; checking a large layer takes less. */
const idleMs = 600_000;

/** Opens the registry. Disposing it cuts what is under way and waits for it; stop listening before. */
export function openRegistry(deps: RegistryDeps): Registry {
  const closing = new AbortController();
  const collector = openCollector({ ...deps, settings: deps.collection });
  const context: RegistryContext = {
    ...deps,
    uploads: new BusyUploads(),
    pulls: new PullWatch(deps.clock),
    rates: new RateLimits(deps),
    quota: new Quota(deps),
    collector,
    signal: closing.signal,
  };
  const metrics = openRegistryMetrics(deps.metrics);
  const underWay = new Set<Promise<void>>();
  const track = async (work: Promise<void>) => {
    underWay.add(work);
    try {
      await work;
    } finally {
      underWay.delete(work);
    }
  };
  collector.schedule();
  return {
    collector,
    quota: context.quota,
    quotas: new AccountQuotas(deps),
    explain: (problem) => errorBody(unreadable[problem]),
    handle: (request, response) => track(serve(context, metrics, { request, response })),
    [Symbol.asyncDispose]: async () => {
      closing.abort(new RegistryError('unavailable', { headers: { 'retry-after': '5' } }));
      await Promise.allSettled([...underWay, collector[Symbol.asyncDispose]()]);
      metrics[Symbol.dispose]();
    },
  };
}

interface RawExchange {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
}

async function serve(context: RegistryContext, metrics: RegistryMetrics, raw: RawExchange): Promise<void> {
  const { request, response } = raw;
  const begunMs = performance.now();
  const id = requestId(request, response);
  const log = context.log.child({ request: id });
  request.socket.setTimeout(idleMs);
  response.setHeader('docker-distribution-api-version', 'registry/2.0');
  const facts = {};
  let found: FoundRoute<Route> | undefined;
  let refusal: RegistryError | undefined;
  try {
    found = findRoute(request.method ?? '', request.url ?? '');
    await perform(context, { request, response, query: found.query, facts }, found);
  } catch (error) {
    refusal = asRegistryError(error);
    metrics.refused(refusal.entry);
    await refuse({ ...context, log }, raw, { refusal, id });
  }
  await finished(response);
  const operation = found?.route.name ?? 'none';
  const code = response.writableFinished ? response.statusCode : 'gone';
  const durationMs = Math.round(performance.now() - begunMs);
  const traffic = metrics.count(request, { operation, code, durationMs });
  const about = { operation, ...(found && factsOf(found)), ...facts, code };
  const answered = code === 'gone' ? {} : { refusal: refusal?.entry };
  log.info({ ...about, ...answered, durationMs, ...traffic }, 'Registry request');
}

/** Has the request's handler answer it, if the caller may. Throws what the request is refused with. */
async function perform(context: RegistryContext, exchange: Exchange, found: FoundRoute<Route>): Promise<void> {
  const { route, parameters } = found;
  if (route.right === 'none') {
    context.rates.admit(exchange.request);
    return await route.handle(context, exchange);
  }
  const caller = await authorize(context, exchange, { ...route, ...parameters });
  exchange.facts.subject = caller.subject;
  // The type of the table holds that each handler reads what its path has.
  await route.handle(context, { ...exchange, caller }, parameters as PathParameters);
}

/** Answers an error, where that is still possible. */
async function refuse(
  { log, signal }: { readonly log: Log; readonly signal: AbortSignal },
  { request, response }: RawExchange,
  { refusal, id }: { readonly refusal: RegistryError; readonly id: string },
): Promise<void> {
  const failed = registryErrors[refusal.entry].status >= 500 && !signal.aborted && !isLeaving(refusal);
  if (failed) log.error({ err: refusal }, 'Registry request failed');
  if (response.destroyed || request.socket.destroyed || response.headersSent) response.destroy();
  else await answerError({ request, response }, { refusal, id }, signal);
}

/** Resolves when an answer has been sent, or cannot be any more. */
async function finished(response: ServerResponse): Promise<void> {
  if (response.writableFinished || response.destroyed) return;
  const { promise, resolve } = Promise.withResolvers<void>();
  response.once('finish', resolve).once('close', resolve);
  await promise;
}

/** What a request is about, for the log. Nothing of it is secret, and all of it has passed the grammar. */
function factsOf({ parameters }: FoundRoute<Route>): Record<string, string> {
  const { repository, digest, uploadId, reference } = parameters;
  return {
    ...(repository !== undefined && { repository }),
    ...(digest !== undefined && { digest }),
    ...(uploadId !== undefined && { upload: uploadId }),
    ...reference,
  };
}
