/** Trust rules and the exchange of ID tokens in the service API. */
import { z } from 'zod';
import { plainText, serviceName } from './names.ts';
import { timestamp } from './timestamp.ts';

/** The issuer of the ID tokens of GitHub's workflows. */
export const githubIssuer = 'https://token.actions.githubusercontent.com';

/** Longer than a deployment needs between its steps, shorter than an attacker needs to find a token in a log. */
const maxLifetimeSeconds = 900;

/** Deployments need no access to settings and tokens. */
const deployScope = z.enum(['read', 'connect', 'push', 'deploy']);

const gitName = plainText.min(1).max(255);

export const trustRuleRequest = z
  .strictObject({
    issuer: z.url().max(255).default(githubIssuer).meta({ description: 'The issuer of ID tokens' }),
    repository: z
      .string()
      .max(255)
      .regex(/^[\w.-]+\/[\w.-]+$/, 'Use <owner>/<name>')
      .meta({ examples: ['acme/draw'] }),
    branch: gitName.optional().meta({ description: 'The only branch. Default: every branch and tag' }),
    environment: gitName
      .optional()
      .meta({ description: 'The only environment of the deployment. Default: any or none' }),
    scopes: z.array(deployScope).min(1).max(4).default(['push', 'deploy']),
    services: z
      .array(serviceName)
      .min(1)
      .max(100)
      .optional()
      .meta({ description: 'The only services that the deploy token is valid for. Default: all' }),
    lifetime_seconds: z.int().min(60).max(maxLifetimeSeconds).default(maxLifetimeSeconds),
  })
  .meta({ id: 'TrustRuleRequest' });

export const trustRuleObject = z
  .strictObject({
    id: z.string(),
    issuer: z.string(),
    repository: z.string(),
    branch: z.string().nullable(),
    environment: z.string().nullable(),
    scopes: z.array(z.string()),
    services: z.array(z.string()).nullable(),
    lifetime_seconds: z.int(),
    created_at: timestamp,
  })
  .meta({ id: 'TrustRule' });

/** ID tokens of GitHub have about 1.5 KB. */
export const exchangeRequest = z.strictObject({ id_token: z.string().max(8192) }).meta({ id: 'ExchangeRequest' });

export const deployToken = z
  .strictObject({
    token: z.string().meta({ description: 'An access token for the API and the registry. It is shown only once' }),
    scopes: z.array(z.string()),
    services: z.array(z.string()).nullable(),
    expires_at: timestamp,
  })
  .meta({ id: 'DeployToken' });

export type TrustRuleObject = z.infer<typeof trustRuleObject>;
