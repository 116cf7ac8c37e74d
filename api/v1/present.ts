/** Converts documents to the answers of v1 and the earliest form, field by field. */
import { generations } from '../../contract/generations.ts';
import type { OlderGeneration } from '../../contract/generations.ts';
import type { V1SpawnResponse, V1StatusObject } from '../../contract/v1.ts';
import { currentV1State } from '../../model/v1-state.ts';
import type { V1StateEntry } from '../../model/v1-state.ts';
import type { Connection } from '../connect/spawn.ts';
import { bearerTokenField } from '../present.ts';
import { connectionUrl, readyUrl } from '../session-url.ts';
import type { Api } from '../dependencies.ts';

export function presentV1Connection(
  api: Api,
  generation: OlderGeneration,
  { backend, address, spawned }: Connection,
): V1SpawnResponse {
  const { prefix } = generations[generation];
  return {
    name: backend.id,
    url: connectionUrl(api.urls, address),
    ready_url: readyUrl(api.urls, backend.id, address),
    status_url: `${api.urls.api}${prefix}/backend/${backend.id}/status`,
    status: currentV1State(backend.history).state,
    spawned,
    ...bearerTokenField(api, backend),
  };
}

export function presentV1State({ state, time }: V1StateEntry): V1StatusObject {
  return { state, time: time.toISOString() };
}
