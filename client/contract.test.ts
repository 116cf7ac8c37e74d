/** The generated types equal those of the schemas. Only the compiler checks this. */
import { expectTypeOf, test } from 'vitest';
import type { z } from 'zod';
import type * as schemas from '../contract/backend.ts';
import type * as connect from '../contract/connect.ts';
import type * as services from '../contract/service.ts';
import type { endpointGroups } from '../contract/all-endpoints.ts';
import type { ServiceErrorCode as DescribedErrorCode } from '../contract/errors.ts';
import type * as client from './contract.ts';

test('requests', () => {
  expectTypeOf<client.ConnectRequest>().toEqualTypeOf<z.input<typeof connect.connectRequest>>();
  expectTypeOf<client.TerminateRequest>().toEqualTypeOf<z.input<typeof schemas.terminateRequest>>();
  expectTypeOf<client.UpdateRequest>().toEqualTypeOf<z.input<typeof services.updateRequest>>();
});

test('responses', () => {
  expectTypeOf<client.ConnectResponse>().toEqualTypeOf<connect.ConnectResponse>();
  expectTypeOf<client.BackendStatus>().toEqualTypeOf<schemas.StatusObject>();
  expectTypeOf<client.Backend>().toEqualTypeOf<schemas.BackendMetadata>();
  expectTypeOf<client.BackendListItem>().toEqualTypeOf<schemas.BackendListItem>();
  expectTypeOf<client.RunningBackend>().toEqualTypeOf<schemas.RunningBackend>();
  expectTypeOf<client.Metrics>().toEqualTypeOf<schemas.MetricsRecord>();
  expectTypeOf<client.Service>().toEqualTypeOf<services.ServiceObject>();
  expectTypeOf<client.Image>().toEqualTypeOf<services.ImageObject>();
});

test('endpoints and errors', () => {
  type SpawnTokens = 'earliestCreateSpawnToken' | 'earliestTokenSpawn' | 'earliestRevokeSpawnToken';
  type Described = keyof (typeof endpointGroups)['v2'] | keyof (typeof endpointGroups)['tools'];
  expectTypeOf<keyof client.Endpoints>().toEqualTypeOf<Described | SpawnTokens>();
  expectTypeOf<client.ServiceErrorCode>().toEqualTypeOf<DescribedErrorCode>();
});
