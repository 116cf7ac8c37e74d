/** The registry as a whole: handles each request from its route to its log line, and runs garbage collection. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { eitherSignal } from '../core/async/abortable.ts';
import { OpenOperations } from '../core/async/open-operations.ts';
import { normalizeTarget } from '../core/http/absolute-form.ts';
import { BodyMemory } from '../core/http/body-memory.ts';
import { requestId } from '../core/http/request-id.ts';
import { StalledDownloads } from '../core/http/stalled-downloads.ts';
import type { Unreadable } from '../core/http/gated-server.ts';
import type { Log } from '../core/log/log.ts';
import { RateLimits } from './access/rate-limits.ts';
import { BusyUploads } from './content/uploads.ts';
import type { RegistryContext, RegistryDeps, RequestContext } from './context.ts';
import { registryErrors } from './error-catalogue.ts';
import type { RegistryErrorName } from './error-catalogue.ts';
import { isDisconnect, RegistryError, asRegistryError } from './errors.ts';
import { GarbageCollector } from './gc/garbage-collector.ts';
import { answerError, errorBody } from './http/answer.ts';
import { authorize } from './http/caller.ts';
import type { FoundRoute, PathParameters } from './http/request-target.ts';
import { watchRight } from './http/right-watch.ts';
import { findRoute } from './http/routes.ts';
import type { Route } from './http/routes.ts';
import { openRegistryMetrics } from './metrics.ts';
import type { RegistryMetrics } from './metrics.ts';
import { AccountQuotas } from './quota/account-quotas.ts';
import { Quota } from './quota/quota.ts';

export interface Registry extends AsyncDisposable {
  /** Answers a request to `/v2/…` or `/token`. Rejects only for an internal error that could not be answered. */
  handle(request: IncomingMessage, response: ServerResponse): Promise<void>;
  /** The body of the answer to a request that cannot be parsed. */
  explain(problem: Unreadable): object;
  readonly collector: GarbageCollector;
  /** Shared by everything in this process that stores content. */
  readonly quota: Quota;
  /** Shows and sets the quotas of accounts, for operators. */
  readonly quotas: AccountQuotas;
}

const unreadable: Readonly<Record<Unreadable, RegistryErrorName>> = {
  malformed: 'request-malformed',
  'head-too-slow': 'head-too-slow',
  'head-too-large': 'head-too-large',
};

/** A connection without traffic for this long is dead or an attack; verifying a large layer takes less. */
const idleMs = 600_000;

/** Opens the registry. Disposing it cancels requests in progress and waits for them; stop listening before. */
export function openRegistry(deps: RegistryDeps): Registry {
  const closing = new AbortController();
  const collector = new GarbageCollector(deps);
  const context: RegistryContext = {
    ...deps,
    uploads: new BusyUploads(),
    bodies: new BodyMemory(),
    downloads: new StalledDownloads(deps.clock),
    rates: new RateLimits(deps),
    quota: new Quota(deps),
    collector,
    signal: closing.signal,
  };
  const metrics = openRegistryMetrics(deps.metrics);
  const requests = new OpenOperations();
  collector.schedule();
  return {
    collector,
    quota: context.quota,
    quotas: new AccountQuotas(deps),
    explain: (problem) => errorBody(unreadable[problem]),
    handle: (request, response) => requests.run(async () => await serve(context, metrics, { request, response })),
    [Symbol.asyncDispose]: async () => {
      closing.abort(new RegistryError('unavailable', { headers: { 'retry-after': '5' } }));
      await Promise.allSettled([requests.settled(), collector[Symbol.asyncDispose]()]);
      metrics[Symbol.dispose]();
    },
  };
}

type RawRequest = Pick<RequestContext, 'request' | 'response'>;

async function serve(context: RegistryContext, metrics: RegistryMetrics, raw: RawRequest): Promise<void> {
  const { request, response } = raw;
  const begunMs = performance.now();
  const id = requestId(request, response);
  const log = context.log.child({ request: id });
  request.socket.setTimeout(idleMs);
  response.setHeader('docker-distribution-api-version', 'registry/2.0');
  const logFields = {};
  let found: FoundRoute<Route> | undefined;
  let failure: RegistryError | undefined;
  try {
    if (!normalizeTarget(request)) throw new RegistryError('not-found');
    found = findRoute(request.method ?? '', request.url ?? '');
    await runHandler(context, { request, response, query: found.query, logFields }, found);
  } catch (error) {
    failure = asRegistryError(error);
    if (!isDisconnect(failure)) metrics.countError(failure.entry);
    await answerFailure({ ...context, log }, raw, { error: failure, id });
  }
  await finished(response);
  const operation = found?.route.name ?? 'none';
  const code = response.writableFinished ? response.statusCode : 'gone';
  const durationMs = Math.round(performance.now() - begunMs);
  const traffic = metrics.count(request, { operation, code, durationMs });
  const about = { operation, ...(found && parameterFields(found)), ...logFields, code };
  const answered = code === 'gone' ? {} : { error: failure?.entry };
  log.info({ ...about, ...answered, durationMs, ...traffic }, 'Registry request');
}

/** Calls the request's handler if the caller has the right. Throws the error to answer. */
async function runHandler(context: RegistryContext, incoming: RequestContext, found: FoundRoute<Route>): Promise<void> {
  const { route, parameters } = found;
  if (route.right === 'none') {
    context.rates.admit(incoming.request);
    return await route.handle(context, incoming);
  }
  const caller = await authorize(context, incoming, { ...route, ...parameters });
  incoming.logFields.subject = caller.subject;
  const { transfer: action } = route;
  const { repository = '' } = parameters;
  using watch = action && watchRight(context, incoming.request, { caller, repository, action });
  const signal = eitherSignal(watch?.signal, context.signal);
  // The type of the table ensures that each handler reads only what its path has.
  await route.handle({ ...context, signal }, { ...incoming, caller, parameters: parameters as PathParameters });
}

/** Answers an error if that is still possible, and logs it if it is an internal one. */
async function answerFailure(
  { log, signal }: { readonly log: Log; readonly signal: AbortSignal },
  { request, response }: RawRequest,
  { error, id }: { readonly error: RegistryError; readonly id: string },
): Promise<void> {
  const isInternal = registryErrors[error.entry].status >= 500 && !signal.aborted && !isDisconnect(error);
  if (isInternal) log.error({ err: error }, 'Registry request failed');
  if (response.destroyed || request.socket.destroyed || response.headersSent) response.destroy();
  else await answerError({ request, response }, { error, id }, signal);
}

/** Resolves when an answer has been sent, or the connection is closed. */
async function finished(response: ServerResponse): Promise<void> {
  if (response.writableFinished || response.destroyed) return;
  const { promise, resolve } = Promise.withResolvers<void>();
  response.once('finish', resolve).once('close', resolve);
  await promise;
}

/** The path parameters for the log. They are valid and contain no secrets. */
function parameterFields({ parameters }: FoundRoute<Route>): Record<string, string> {
  const { repository, digest, uploadId, reference } = parameters;
  return {
    ...(repository !== undefined && { repository }),
    ...(digest !== undefined && { digest }),
    ...(uploadId !== undefined && { upload: uploadId }),
    ...reference,
  };
}
