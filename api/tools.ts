/** Endpoints that existing command lines call and that are not in the API document. */
import { toolEndpoints } from '../contract/tool-endpoints.ts';
import type { TerminationKind } from '../contract/statuses.ts';
import type { Backend } from '../model/backend.ts';
import { visibleService } from './access.ts';
import type { Caller, ServicePath } from './access.ts';
import { answer } from './app.ts';
import type { Api } from './dependencies.ts';
import { imageName } from './present.ts';
import { requestBackendStop, runningBackends } from './stop.ts';

/** How many stop requests are written at a time: a store commits them together. */
const batchSize = 50;

export const toolRoutes = [
  answer(toolEndpoints.imageName, answerImageName),
  answer(toolEndpoints.terminateBackends, async (api, { parameters, body, caller, signal }) => {
    const service = await visibleService(api.store, caller, parameters);
    const running = await Array.fromAsync(runningBackends(api.store, service, body.before ?? (await api.store.now())));
    const isDry = body.dry_run === true;
    const kind = body.hard === true ? 'hard' : 'soft';
    return {
      status: 'ok',
      backend_count: running.length,
      terminated_count: isDry ? 0 : await stopAll(api, running, kind, signal),
      is_complete: !isDry || running.length === 0,
    };
  }),
];

/** Answers the name of a service's images in the registry. */
export async function answerImageName(
  { store, urls }: Api,
  { parameters, caller }: { readonly parameters: ServicePath; readonly caller: Caller },
) {
  return { imageName: imageName(urls, await visibleService(store, caller, parameters)) };
}

/** Requests the stop of backends. Returns how many were not stopping already. */
async function stopAll(
  api: Api,
  running: readonly Backend[],
  kind: TerminationKind,
  signal: AbortSignal,
): Promise<number> {
  let count = 0;
  for (let at = 0; at < running.length; at += batchSize) {
    signal.throwIfAborted();
    const batch = running.slice(at, at + batchSize);
    const isFirst = await Promise.all(batch.map(async ({ id }) => await requestBackendStop(api, id, kind)));
    count += isFirst.filter(Boolean).length;
  }
  return count;
}
