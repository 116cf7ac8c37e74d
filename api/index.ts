/** The API component: the service API, readiness pages, and background passes over backends and old documents. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { JsonBodies } from '../core/http/json-bodies.ts';
import type { Unreadable } from '../core/http/gated-server.ts';
import { openBackendWatch } from '../model/backend-watch.ts';
import { FailureLimits } from '../model/failure-limits.ts';
import { ContainerEnv } from '../model/container-env.ts';
import { serviceSecretsBox } from '../model/service-settings.ts';
import { spawnOptionsBox } from '../model/spawn-token.ts';
import { openEventStreams } from './event-streams.ts';
import { CheckQueue } from './accounts/check-queue.ts';
import { openCliLoginWatch } from './accounts/cli-logins.ts';
import { AccountLimiter } from './account-limits.ts';
import { IdTokens } from './accounts/id-tokens.ts';
import { newApp } from './app.ts';
import { startOrphanReaper } from './background/orphan-reaper.ts';
import { explainUnreadable } from './errors.ts';
import { Prefetcher } from './background/prefetch.ts';
import { OpenRequests } from './open-requests.ts';
import { PullProgresses } from './ready/pull-progress.ts';
import { Retention } from './background/retention.ts';
import type { Api, ApiDependencies } from './dependencies.ts';
import { apiRoutes } from './routes.ts';
import { ServiceClearing } from './background/service-clearing.ts';
import { SpawnTimes } from './connect/spawn-times.ts';

export type { ApiDependencies } from './dependencies.ts';

/** If the message about a change is lost, clients that follow the backend see the change this much later at most. */
const pollEveryMs = 5_000;

export interface ApiComponent extends AsyncDisposable {
  /** Answers one request. */
  readonly handle: (request: IncomingMessage, response: ServerResponse) => Promise<void>;
  /** Returns the body of the answer to an invalid request. */
  readonly explain: (problem: Unreadable) => object;
}

/** Opens the API, which handles the requests of a listener. Disposing it ends open streams. */
export async function openApi(deps: ApiDependencies): Promise<ApiComponent> {
  await using opening = new AsyncDisposableStack();
  const watch = opening.use(await openBackendWatch({ ...deps, pollEveryMs }));
  const pullProgresses = opening.use(await PullProgresses.open(deps));
  opening.use(startOrphanReaper(deps));
  opening.use(new Retention(deps));
  const clearing = opening.use(new ServiceClearing(deps));
  const spawnTimes = opening.use(new SpawnTimes(deps));
  const prefetcher = opening.use(new Prefetcher(deps));
  await prefetcher.listen();
  const openRequests = opening.use(new OpenRequests());
  const api: Api = {
    ...deps,
    watch,
    pullProgresses,
    bodies: new JsonBodies(deps.clock),
    eventStreams: openEventStreams(deps, openRequests.closing),
    idTokens: new IdTokens(deps.oidcIssuers, deps.urls.api),
    limits: new AccountLimiter({ ...deps, defaultLimits: deps.accountLimits }),
    cliLogins: await openCliLoginWatch(deps, opening),
    failures: new FailureLimits(deps.store),
    passwordChecks: new CheckQueue(),
    deviceProof: deps.secret.deriver('devices of users'),
    bearerFor: deps.secret.deriver('bearer tokens of backends'),
    containerEnv: new ContainerEnv(deps.secret),
    serviceSecrets: serviceSecretsBox(deps.secret),
    spawnOptions: spawnOptionsBox(deps.secret),
    clearServices: () => clearing.begin(),
    recordSpawn: (service, environment, time) => spawnTimes.record(service, environment, time),
    prefetch: (service, isSelected) => prefetcher.begin(service, isSelected),
    openRequests,
  };
  const owned = opening.move();
  return {
    handle: newApp(api, apiRoutes),
    explain: explainUnreadable(deps.log),
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}
