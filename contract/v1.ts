/** Requests and answers of v1 and of the earliest form of the service API (sections 2.12 and 2.13 of the API document). */
import { z } from 'zod';
import { bearerToken, envOf, seconds, urlForm } from './connect.ts';
import { generations, v1State } from './generations.ts';
import { environmentName, imageReference, key } from './names.ts';
import { timestamp } from './timestamp.ts';

/** Only variables with this prefix can be passed to a spawn with a spawn token, which is not authenticated. */
export const tokenSpawnPrefix = 'PLATFORM_';

const spawnFields = {
  tag: imageReference.optional(),
  grace_period_seconds: seconds
    .meta({ description: 'Seconds for which the backend keeps running after all its connections have closed' })
    .optional(),
  lock: key.optional(),
  service_environment: environmentName
    .meta({ description: 'The environment whose defaults apply. Default: `default`' })
    .optional(),
  url_form: urlForm.optional(),
};

export const v1SpawnRequest = z
  .strictObject({ ...spawnFields, env: envOf(generations.v1).optional() })
  .meta({ id: 'V1SpawnRequest' });

const earliestSpawnFields = {
  ...spawnFields,
  env: envOf(generations.earliest).optional(),
  port: z.int().min(1).max(65_535).meta({ description: 'The port on which the backend listens' }).optional(),
  require_bearer_token: z
    .boolean()
    .meta({ description: 'Whether each request to the backend needs the `bearer_token` of the answer' })
    .optional(),
};

export const earliestSpawnRequest = z.strictObject(earliestSpawnFields).meta({ id: 'EarliestSpawnRequest' });

export const spawnTokenRequest = z
  .strictObject(earliestSpawnFields)
  .meta({ id: 'SpawnTokenRequest', description: 'The options of all spawns that are made with the token' });

export const spawnTokenResponse = z.strictObject({ token: z.string() }).meta({ id: 'SpawnTokenResponse' });

export const tokenSpawnRequest = z
  .strictObject({
    env: envOf(generations.earliest)
      .superRefine((env, context) => {
        for (const name of Object.keys(env).filter((each) => !each.startsWith(tokenSpawnPrefix))) {
          const message = `Only variables that begin with ${tokenSpawnPrefix} can be passed with a spawn token`;
          context.addIssue({ code: 'custom', message, path: [name] });
        }
      })
      .optional(),
    url_form: urlForm.optional(),
  })
  .meta({ id: 'TokenSpawnRequest' });

export const fetchRequest = z.strictObject({ lock: key, url_form: urlForm.optional() }).meta({ id: 'FetchRequest' });

export const v1SpawnResponse = z
  .strictObject({
    name: z.string(),
    url: z.string(),
    ready_url: z.string(),
    status_url: z.string(),
    status: v1State,
    spawned: z.boolean(),
    bearer_token: bearerToken.optional(),
  })
  .meta({ id: 'V1SpawnResponse' });

export const v1StatusObject = z.strictObject({ state: v1State, time: timestamp }).meta({ id: 'V1Status' });

export type V1SpawnRequest = z.infer<typeof v1SpawnRequest>;
export type EarliestSpawnRequest = z.infer<typeof earliestSpawnRequest>;
export type V1SpawnResponse = z.infer<typeof v1SpawnResponse>;
export type V1StatusObject = z.infer<typeof v1StatusObject>;
