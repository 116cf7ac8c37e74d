/** The access of the step to the platform. */
import { BerthClient } from '../client/index.ts';
import { deployToken } from './id-token.ts';
import type { Job } from './id-token.ts';
import type { Inputs } from './inputs.ts';

export interface Access {
  readonly token: string;
  readonly client: BerthClient;
}

/** Logs in. Call it again after work that may take longer than a deploy token is valid, such as a build. */
export type LogIn = (signal: AbortSignal) => Promise<Access>;

/** Returns the log-in with the token of the inputs, or each time with a new deploy token. */
export function logInOf(inputs: Inputs, job: Omit<Job, 'signal'>): LogIn {
  return async (signal) => {
    const token = inputs.token ?? (await deployToken(inputs, { ...job, signal })).token;
    return { token, client: new BerthClient({ url: inputs.host, token }) };
  };
}
