/** What a backend gets that is spawned through v1 or the earliest form of the service API. */
import { generations } from '../../contract/generations.ts';
import type { OlderGeneration } from '../../contract/generations.ts';
import { hashToken } from '../../model/access-token.ts';
import type { BackendPlan } from '../../model/backend.ts';
import { tokenSource } from '../../model/route.ts';
import { connectionUrl } from '../present.ts';
import type { Api } from '../dependencies.ts';

/** What only a spawn through one of the older generations asks for. */
export interface OlderSpawn {
  readonly generation: OlderGeneration;
  readonly port?: number | undefined;
  readonly requiresBearerToken?: boolean | undefined;
}

interface Spawned {
  readonly id: string;
  /** The service's name within its account. */
  readonly service: string;
  readonly env: BackendPlan['env'];
}

/**
 * The part of a backend's plan that depends on the generation, and the variables that must be encrypted. The platform's variables
 * override those of the request.
 */
export function olderPlan(
  api: Pick<Api, 'urls' | 'tokenFor' | 'bearerFor'>,
  { generation, port, requiresBearerToken = false }: OlderSpawn,
  { id, service, env }: Spawned,
): {
  readonly plan: Pick<BackendPlan, 'generation' | 'bearerHash' | 'env'> & { readonly port?: number };
  readonly secrets: Readonly<Record<string, string>>;
} {
  const reserved: readonly string[] = generations[generation].reservedVariables;
  const given = { PLATFORM_NAME: id, PLATFORM_SERVICE: service };
  const variables = Object.fromEntries(Object.entries(given).filter(([name]) => reserved.includes(name)));
  return {
    plan: {
      generation,
      env: { ...env, ...variables },
      ...(requiresBearerToken && { bearerHash: hashToken(api.bearerFor(id)) }),
      ...(port !== undefined && { port }),
    },
    // It contains the connection token, which stands in the store as a hash only.
    secrets: reserved.includes('PLATFORM_URL') ? { PLATFORM_URL: commonUrl(api, id) } : {},
  };
}

/** The URL of a backend that its clients without a name get: all clients of the older generations. */
function commonUrl({ urls, tokenFor }: Pick<Api, 'urls' | 'tokenFor'>, backend: string): string {
  return connectionUrl(urls, tokenFor(tokenSource({ backend })));
}
