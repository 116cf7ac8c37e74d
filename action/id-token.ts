/** The ID token of a job, and the deploy token that the API returns for it. */
import { BerthClient, BerthError } from '../client/index.ts';
import type { DeployToken } from '../client/index.ts';
import { Failure } from './failure.ts';
import type { Inputs } from './inputs.ts';
import type { Environment, Workflow } from './workflow/workflow.ts';

/** If GitHub answers, it does so in less than a second. */
const timeoutMs = 15_000;

/** GitHub's service has short outages. */
const attempts = 3;

export interface Job {
  readonly env: Environment;
  readonly workflow: Workflow;
  readonly signal: AbortSignal;
}

/** Exchanges the ID token of the job for a deploy token, which allows all that the inputs need. Both are masked. */
export async function deployToken(inputs: Inputs, { env, workflow, signal }: Job): Promise<DeployToken> {
  const { host, account } = inputs;
  const url = env['ACTIONS_ID_TOKEN_REQUEST_URL'];
  const secret = env['ACTIONS_ID_TOKEN_REQUEST_TOKEN'];
  if (!url || !secret) {
    throw new Failure('token: Set it, or give the job "permissions: id-token: write" and the account a trust rule');
  }
  const idToken = await requestIdToken(audienceUrl(url, host), secret, signal);
  workflow.mask(idToken);
  const client = new BerthClient({ url: host });
  try {
    const deploy = await client.trustRules.exchange(account, idToken, { signal });
    workflow.mask(deploy.token);
    checkScopes(inputs, deploy.scopes);
    return deploy;
  } catch (error) {
    if (!(error instanceof BerthError)) throw error;
    throw new Failure(`The account ${account} has not accepted this job: ${error.message}`, { cause: error });
  }
}

/** Sets the address of the API as the audience, so that the API accepts no tokens that were issued for other services. */
function audienceUrl(url: string, host: string): URL {
  const result = new URL(url);
  result.searchParams.set('audience', host);
  return result;
}

/** Refuses a trust rule with which the deployment would fail after the push. */
function checkScopes({ waitForReady, rollbackOnFailure }: Inputs, scopes: readonly string[]): void {
  const needed = ['push', 'deploy', ...(waitForReady ? ['connect'] : []), ...(rollbackOnFailure ? ['read'] : [])];
  if (needed.every((scope) => scopes.includes(scope))) return;
  const how = `Create one with "berth admin trust create" and --scope ${needed.join(',')}`;
  throw new Failure(`The trust rule has the scopes ${scopes.join(',')}, and these inputs need others. ${how}`);
}

async function requestIdToken(url: URL, secret: string, signal: AbortSignal): Promise<string> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await requestOnce(url, secret, signal);
    } catch (error) {
      signal.throwIfAborted();
      const why = error instanceof Error ? error.message : String(error);
      if (attempt === attempts) throw new Failure(`GitHub returned no ID token: ${why}`, { cause: error });
    }
  }
}

async function requestOnce(url: URL, secret: string, signal: AbortSignal): Promise<string> {
  const response = await fetch(url, {
    headers: { authorization: `Bearer ${secret}`, accept: 'application/json' },
    signal: AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]),
  });
  if (!response.ok) throw new Error(`HTTP status ${response.status}`);
  const { value } = (await response.json()) as { value?: unknown };
  if (typeof value !== 'string' || value === '') throw new Error('the response has no token');
  return value;
}
