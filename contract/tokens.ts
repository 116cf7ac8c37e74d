/** Access tokens in the service API. */
import { z } from 'zod';
import { plainText, serviceName } from './names.ts';
import { scope, scopes } from './scopes.ts';
import { timestamp } from './timestamp.ts';

/** A longer list would make every check of the token slow; such a token can be valid for the whole account instead. */
const maxServices = 100;

/** Ten years. */
const maxExpirySeconds = 315_360_000;

/** The owner's name for a token. */
const tokenName = plainText
  .min(1)
  .max(100)
  .meta({ examples: ['CI of the drawing app'] });

export const createTokenRequest = z
  .strictObject({
    name: tokenName,
    scopes: z.array(scope).min(1).max(scopes.length).meta({ description: 'What the token allows' }),
    services: z
      .array(serviceName)
      .min(1)
      .max(maxServices)
      .optional()
      .meta({ description: 'The only services that the token is valid for. Default: all services of the account' }),
    expires_in_seconds: z
      .int()
      .min(1)
      .max(maxExpirySeconds)
      .optional()
      .meta({ description: 'For how long the token is valid. Default: until it is revoked' }),
  })
  .meta({ id: 'CreateTokenRequest' });

const tokenFields = {
  id: z.string().meta({ description: 'Names the token in other requests. It is no secret' }),
  name: tokenName,
  hint: z.string().meta({ description: 'The first characters of the secret' }),
  kind: z.enum(['access', 'deploy']),
  scopes: z.array(scope),
  services: z.array(z.string()).nullable().meta({ description: 'The only services that it is valid for; null: all' }),
  user_email: z.string().nullable().meta({ description: 'The user that it acts for; null: it belongs to the account' }),
  created_at: timestamp,
  expires_at: timestamp.nullable(),
  revoked_at: timestamp.nullable(),
  last_used_at: timestamp.nullable().meta({ description: 'The last use, exact to a minute' }),
};

export const tokenObject = z.strictObject(tokenFields).meta({ id: 'AccessToken' });

export const createdToken = z
  .strictObject({ token: z.string().meta({ description: 'The token itself. It is shown only once' }), ...tokenFields })
  .meta({ id: 'CreatedAccessToken' });

export type CreateTokenRequest = z.infer<typeof createTokenRequest>;
export type TokenObject = z.infer<typeof tokenObject>;
