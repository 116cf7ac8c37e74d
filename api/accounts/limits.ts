/** Limits of accounts: shown to their members, set by administrators. */
import { endpoints } from '../../contract/endpoints.ts';
import { accounts, withLimits } from '../../model/account.ts';
import { ownAccount } from '../access.ts';
import { answer } from '../app.ts';

export const limitEndpoints = [
  answer(endpoints.accountLimits, async (api, { parameters, caller }) => {
    const { account } = ownAccount(caller, parameters.account);
    const { connectsPerSecond, runningBackends } = await api.limits.limitsOf(account);
    return { connects_per_second: connectsPerSecond, running_backends: runningBackends };
  }),
  answer(endpoints.setAccountLimits, async (api, { parameters, body, caller }) => {
    const { account } = ownAccount(caller, parameters.account);
    await api.store.update(accounts, account, (current) =>
      withLimits(current, { connectsPerSecond: body.connects_per_second, runningBackends: body.running_backends }),
    );
    api.limits.forget(account);
  }),
];
