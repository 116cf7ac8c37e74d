/** `berth admin account` and `berth admin limits`. */
import { Command, InvalidArgumentError } from '@commander-js/extra-typings';
import { nonNegative } from '../../arguments.ts';
import { withExamples } from '../../examples.ts';
import { fields, table } from '../../output/table.ts';
import { collect } from '../../collect.ts';
import type { Session } from '../../session.ts';

export function accountCommand(session: Session) {
  return new Command('account')
    .description('Creates and lists accounts.')
    .addCommand(createCommand(session))
    .addCommand(listCommand(session));
}

function createCommand(session: Session) {
  const command = new Command('create')
    .summary('create an account')
    .description('Creates an account.')
    .argument('<name>', 'its name')
    .option('--owner <email>', 'the user who becomes owner (default: you)')
    .action(async (name, { owner }) => {
      const client = await session.client();
      const account = { name, ...(owner !== undefined && { owner_email: owner }) };
      await client.accounts.create(account, { signal: session.signal });
      session.output.done({ account: name }, `Created the account ${name}`);
    });
  return withExamples(command, 'admin account create acme --owner ada@example.com');
}

function listCommand(session: Session) {
  return new Command('list')
    .alias('ls')
    .summary('list accounts')
    .description('Lists the accounts that the log-in is valid for; for an administrator, all accounts.')
    .action(async () => {
      const client = await session.client();
      const accounts = await collect(client.accounts.list({ signal: session.signal }));
      session.output.data(
        accounts,
        table(
          ['ACCOUNT', 'YOUR ROLE'],
          accounts.map(({ name, role }) => [name, role]),
        ),
      );
    });
}

export function limitsCommand(session: Session) {
  const command = new Command('limits')
    .summary('show or set how much an account may do')
    .description(
      'Shows how often an account may connect and how many backends it may run. Options set these limits first.',
    )
    .argument('[account]', 'the account (default: as for other commands)')
    .option('--connects-per-second <count>', 'a number; none: no limit; default: the limit of every account', limit)
    .option('--running-backends <count>', 'a number; none: no limit; default: the limit of every account', limit)
    .action(async (name, { connectsPerSecond, runningBackends }) => {
      const client = await session.client();
      const account = name ?? (await session.account());
      const change = {
        ...(connectsPerSecond !== undefined && { connects_per_second: connectsPerSecond }),
        ...(runningBackends !== undefined && { running_backends: runningBackends }),
      };
      const { signal } = session;
      if (Object.keys(change).length > 0) await client.accounts.setLimits(account, change, { signal });
      const limits = await client.accounts.limits(account, { signal });
      session.output.data(
        limits,
        fields(Object.fromEntries(Object.entries(limits).map(([key, value]) => [key, value === 0 ? 'none' : value]))),
      );
    });
  return withExamples(command, 'admin limits acme', 'admin limits acme --running-backends 100');
}

/** In the API, 0 means no limit, and null the limit of all accounts. */
function limit(text: string): number | null {
  if (text === 'none') return 0;
  if (text === 'default') return null;
  const value = nonNegative(text);
  if (value === 0) throw new InvalidArgumentError('Use "none" for no limit.');
  return value;
}
