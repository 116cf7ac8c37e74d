import { endpoints } from '../../contract/endpoints.ts';
import { backends } from '../../model/backend.ts';
import type { Backend } from '../../model/backend.ts';
import { covers } from '../../model/permissions.ts';
import { trafficOf } from '../../model/traffic.ts';
import { answer } from '../app.ts';
import { streamLog, streamMetrics, streamStatuses } from '../backend-streams.ts';
import { findPage } from '../pages.ts';
import { presentBackend, presentCurrentStatus, presentListItem, presentRunning, presentTraffic } from '../present.ts';
import { stopBackend } from '../stop.ts';
import { anyBackend, partOfAccount, visibleBackend, visibleService } from '../access.ts';

export const backendEndpoints = [
  answer(endpoints.backendStatus, async (api, { parameters }) =>
    presentCurrentStatus(await anyBackend(api.store, parameters.backend_id)),
  ),
  answer(endpoints.backendStatusStream, async (api, { parameters, request, response, signal }) => {
    await streamStatuses(api, await anyBackend(api.store, parameters.backend_id), { request, response, signal });
  }),
  answer(endpoints.backend, async (api, { parameters, caller }) =>
    presentBackend(await visibleBackend(api.store, caller, parameters.backend_id)),
  ),
  answer(endpoints.backendLogs, async (api, { parameters, query, caller, request, response, signal }) => {
    const backend = await visibleBackend(api.store, caller, parameters.backend_id);
    await streamLog(api, backend, { request, response, signal, storedOnly: query.follow === false });
  }),
  answer(endpoints.backendMetrics, async (api, { parameters, caller, request, response, signal }) => {
    const backend = await visibleBackend(api.store, caller, parameters.backend_id);
    await streamMetrics(api, backend, { request, response, signal });
  }),
  answer(endpoints.backendTraffic, async (api, { parameters, caller }) => {
    const { id } = await visibleBackend(api.store, caller, parameters.backend_id);
    return presentTraffic(id, await trafficOf(api.store, id));
  }),
  answer(endpoints.terminate, async (api, { parameters, body, caller, signal }) => {
    const backend = await visibleBackend(api.store, caller, parameters.backend_id);
    await stopBackend(api, backend.id, body.hard === true ? 'hard' : 'soft', signal);
  }),
  answer(endpoints.serviceBackends, async (api, { parameters, query, caller }) => {
    const service = await visibleService(api.store, caller, parameters);
    const range = { ...(query.start && { from: query.start }), ...(query.end && { to: query.end }) };
    const equals = { account: service.account, service: service.name };
    const ofService = { index: 'byService', equals, range, order: 'descending' } as const;
    const list = { collection: backends, query: ofService, by: 'createdAt', type: 'time' } as const;
    const { items, next } = await findPage(api.store, list, query);
    return { backends: items.map(presentListItem), ...next };
  }),
  answer(endpoints.accountBackends, async (api, { parameters, query, caller }) => {
    const permission = partOfAccount(caller, parameters.account);
    const equals = { account: parameters.account, live: true };
    const running = { index: 'byAccount', equals, order: 'descending' } as const;
    const includes = ({ service }: Backend) => covers(permission, service);
    const list = { collection: backends, query: running, by: 'createdAt', type: 'time', includes } as const;
    const { items, next } = await findPage(api.store, list, query);
    return { running_backends: items.map(presentRunning), ...next };
  }),
];
