/** `berth whoami`. */
import { Command } from '@commander-js/extra-typings';
import { collect } from '../collect.ts';
import { fields } from '../output/table.ts';
import type { Session } from '../session.ts';

export function whoamiCommand(session: Session) {
  return new Command('whoami')
    .summary('show the current log-in')
    .description('Shows the platform, the user and the accounts of the log-in. Fails if the log-in is no longer valid.')
    .action(async () => {
      const { host, user, source } = await session.login();
      const client = await session.client();
      const accounts = await collect(client.accounts.list({ signal: session.signal }));
      const account = await session.defaultAccount();
      session.output.data(
        { host, user: user ?? null, account: account ?? null, accounts, token_from: source },
        fields({
          host,
          user: user ?? 'none, this is an access token',
          account,
          accounts: accounts.map(({ name, role }) => `${name} (${role})`).join(', ') || 'none',
          token: source === 'file' ? session.loginsPath : 'BERTH_TOKEN',
        }),
      );
    });
}
