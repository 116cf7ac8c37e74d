/** The part of a plan that is specific to backends spawned through v1 or the earliest form of the service API. */
import { generations } from '../../contract/generations.ts';
import type { UrlForm } from '../../contract/connect.ts';
import type { OlderGeneration } from '../../contract/generations.ts';
import { hashToken } from '../../model/access-token.ts';
import type { Backend, BackendPlan } from '../../model/backend.ts';
import { connectionToken } from '../../model/route.ts';
import type { Api } from '../dependencies.ts';
import { connectionUrl } from '../session-url.ts';
import type { SessionAddress } from '../../model/ready-url.ts';
import type { Spawned } from './base-url.ts';
import { routedTo } from './routes.ts';

/** The options that only spawns through an older generation have. */
export interface OlderSpawn {
  readonly generation: OlderGeneration;
  readonly port?: number | undefined;
  readonly requiresBearerToken?: boolean | undefined;
}

/**
 * The part of a backend's plan that depends on the generation, and the variables that must be encrypted. The platform's variables
 * override those of the request.
 */
export function olderPlan(
  api: Pick<Api, 'urls' | 'tokenFor' | 'bearerFor'>,
  { generation, port, requiresBearerToken = false }: OlderSpawn,
  spawned: Spawned,
  form: UrlForm,
): {
  readonly plan: Pick<BackendPlan, 'generation' | 'bearerHash' | 'urlForm' | 'env'> & { readonly port?: number };
  readonly secrets: Readonly<Record<string, string>>;
} {
  const { id, service, env } = spawned;
  const reserved: readonly string[] = generations[generation].reservedVariables;
  const given = { PLATFORM_NAME: id, PLATFORM_SERVICE: service };
  const variables = Object.fromEntries(Object.entries(given).filter(([name]) => reserved.includes(name)));
  return {
    plan: {
      generation,
      ...(form === 'host' && { urlForm: form }),
      env: { ...env, ...variables },
      ...(requiresBearerToken && { bearerHash: hashToken(api.bearerFor(id)) }),
      ...(port !== undefined && { port }),
    },
    // It contains the connection token, of which the store holds only a hash.
    secrets: reserved.includes('PLATFORM_URL')
      ? { PLATFORM_URL: connectionUrl(api.urls, commonAddress(api, { ...spawned, urlForm: form })) }
      : {},
  };
}

/** The address in the URL that a spawn through an older generation returned. Older generations have no users. */
export function commonAddress(
  { tokenFor }: Pick<Api, 'tokenFor'>,
  backend: Pick<Backend, 'id' | 'account' | 'service' | 'key' | 'fencingToken' | 'urlForm'>,
): SessionAddress {
  const form = backend.urlForm ?? 'path';
  return { token: connectionToken(tokenFor, routedTo(backend, {}, form)), form };
}
