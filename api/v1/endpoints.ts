/** Answers the endpoints of v1 and of the earliest form, which share the handlers of v2 wherever they mean the same. */
import type { ConnectRequest } from '../../contract/connect.ts';
import type { OlderGeneration } from '../../contract/generations.ts';
import { earliestEndpoints, v1Endpoints } from '../../contract/v1-endpoints.ts';
import type { EarliestSpawnRequest, V1SpawnRequest } from '../../contract/v1.ts';
import { environmentOf } from '../../model/service.ts';
import { spawnOptionsOf } from '../../model/spawn-token.ts';
import { currentV1State, v1States } from '../../model/v1-state.ts';
import { answer } from '../app.ts';
import { connect } from '../connect/connect.ts';
import type { ConnectTarget } from '../connect/connect.ts';
import { statusEvents, streamLog, streamStatuses } from '../backend-streams.ts';
import { answerOlderReadyPage } from '../ready/ready.ts';
import type { Api } from '../dependencies.ts';
import { createSpawnToken, findSpawnToken, revokeSpawnToken } from '../connect/spawn-tokens.ts';
import { stopBackend } from '../stop.ts';
import { answerImageName } from '../tools.ts';
import { createService, listServices } from '../v2/services.ts';
import { anyBackend, ownService, visibleBackend, visibleService } from '../access.ts';
import { presentV1Connection, presentV1State } from './present.ts';

const v1Events = statusEvents((history) =>
  v1States(history).map((state) => ({ id: state.position, data: presentV1State(state) })),
);

const spawnEndpoints = [
  answer(v1Endpoints.spawn, async (api, call) => {
    ownService(call.caller, call.parameters);
    return await spawn(api, 'v1', { ...call.parameters, options: call.body }, call);
  }),
  answer(earliestEndpoints.spawn, async (api, call) => {
    ownService(call.caller, call.parameters);
    return await spawn(api, 'earliest', { ...call.parameters, options: call.body }, call);
  }),
];

const spawnTokenEndpoints = [
  answer(earliestEndpoints.createSpawnToken, async (api, { parameters, body, caller }) => {
    const service = await visibleService(api.store, caller, parameters);
    environmentOf(service, body.service_environment);
    return { token: await createSpawnToken(api, service, body) };
  }),
  answer(earliestEndpoints.tokenSpawn, async (api, call) => {
    const { parameters, body } = call;
    const token = await findSpawnToken(api.store, parameters.token);
    const options = spawnOptionsOf(token, api.spawnOptions);
    // The owner's variables override those of the request.
    const env = { ...body.env, ...options.env };
    const url_form = body.url_form ?? options.url_form;
    return await spawn(api, 'earliest', { ...token, options: { ...options, env, url_form } }, call);
  }),
  answer(
    earliestEndpoints.revokeSpawnToken,
    async (api, { parameters, caller }) => await revokeSpawnToken(api.store, caller, parameters.token),
  ),
];

export const olderEndpoints = [
  ...spawnEndpoints,
  ...endpointsOf('v1', v1Endpoints),
  ...endpointsOf('earliest', earliestEndpoints),
  ...spawnTokenEndpoints,
  answer(earliestEndpoints.image, answerImageName),
];

type Shared = Omit<typeof v1Endpoints, 'spawn'>;

/** The endpoints that differ only in their paths. */
function endpointsOf(generation: OlderGeneration, endpoints: Shared) {
  return [
    answer(endpoints.auth, async (_api, { caller }) => ({
      status: 'ok',
      accounts: caller.permissions.accounts.map(({ account }) => account),
      is_admin: caller.permissions.isAdmin,
    })),
    answer(endpoints.createService, createService),
    answer(endpoints.listServices, listServices),
    answer(endpoints.fetch, async (api, call) => {
      const { parameters, body, caller } = call;
      ownService(caller, parameters);
      const target = { ...parameters, older: { generation } };
      const request = { key: body.lock, spawn: false, ...(body.url_form && { url_form: body.url_form }) };
      return presentV1Connection(api, generation, await connect(api, target, request, call));
    }),
    answer(endpoints.backendStatus, async (api, { parameters }) =>
      presentV1State(currentV1State((await anyBackend(api.store, parameters.backend_name)).history)),
    ),
    answer(endpoints.statusStream, async (api, { parameters, request, response, signal }) => {
      const backend = await anyBackend(api.store, parameters.backend_name);
      await streamStatuses(api, backend, { request, response, signal }, v1Events);
    }),
    answer(endpoints.logs, async (api, { parameters, caller, request, response, signal }) => {
      const backend = await visibleBackend(api.store, caller, parameters.backend_name);
      await streamLog(api, backend, { request, response, signal });
    }),
    answer(endpoints.readyPage, async (api, { parameters, request, response }) => {
      await answerOlderReadyPage(api, { request, response }, parameters.backend_name);
    }),
    answer(endpoints.terminate, async (api, { parameters, caller, signal }) => {
      const { id } = await visibleBackend(api.store, caller, parameters.backend_name);
      await stopBackend(api, id, 'soft', signal);
    }),
  ];
}

interface Spawn extends Pick<ConnectTarget, 'account' | 'service'> {
  readonly options: V1SpawnRequest & Pick<EarliestSpawnRequest, 'port' | 'require_bearer_token'>;
}

async function spawn(api: Api, generation: OlderGeneration, spawned: Spawn, client: { readonly signal: AbortSignal }) {
  const { account, service, options } = spawned;
  const { service_environment: environment, port, require_bearer_token: requiresBearerToken } = options;
  const older = { generation, port, requiresBearerToken };
  const target = { account, service, ...(environment !== undefined && { environment }), older };
  return presentV1Connection(api, generation, await connect(api, target, connectRequestOf(options), client));
}

/** Returns the equivalent request of v2. */
function connectRequestOf({ tag, grace_period_seconds, lock, env, url_form }: V1SpawnRequest): ConnectRequest {
  return {
    ...(lock !== undefined && { key: lock }),
    ...(url_form && { url_form }),
    spawn: {
      ...(tag !== undefined && { tag }),
      ...(grace_period_seconds !== undefined && { max_idle_seconds: grace_period_seconds }),
      ...(env && { executable: { env } }),
    },
  };
}
