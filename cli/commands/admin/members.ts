/** `berth admin member`. */
import { Argument, Command } from '@commander-js/extra-typings';
import { withExamples } from '../../examples.ts';
import { table } from '../../output/table.ts';
import { ago } from '../../output/time-text.ts';
import type { Session } from '../../session.ts';

const roles = ['owner', 'member', 'viewer'] as const;

export function memberCommand(session: Session) {
  return new Command('member')
    .description('Adds, lists and removes the members of the account.')
    .addCommand(listCommand(session))
    .addCommand(setCommand(session))
    .addCommand(removeCommand(session));
}

function listCommand(session: Session) {
  return new Command('list')
    .alias('ls')
    .summary('list the members of the account')
    .description('Lists the members of the account.')
    .action(async () => {
      const client = await session.client();
      const members = await client.accounts.members(await session.account(), { signal: session.signal });
      const rows = members.map((each) => [each.user_email, each.role, ago(each.added_at)]);
      session.output.data(members, table(['E-MAIL', 'ROLE', 'ADDED'], rows));
    });
}

function setCommand(session: Session) {
  const command = new Command('set')
    .alias('add')
    .summary('add a user to the account, or change the role')
    .description('Adds a user to the account, or changes the role of a member.')
    .argument('<email>', 'the e-mail address of a user')
    .addArgument(new Argument('<role>', 'owner: everything; member: works with services; viewer: reads').choices(roles))
    .action(async (email, role) => {
      const client = await session.client();
      const account = await session.account();
      const member = { user_email: email, role };
      await client.accounts.setMember(account, member, { signal: session.signal });
      session.output.done({ account, ...member }, `${email} is ${role} of ${account}`);
    });
  return withExamples(command, 'admin member set ada@example.com member --account acme');
}

function removeCommand(session: Session) {
  return new Command('remove')
    .alias('rm')
    .summary('remove a user from the account')
    .description('Removes a user from the account. Within a second, tokens of the user stop working there.')
    .argument('<email>', 'the e-mail address of a member')
    .action(async (email) => {
      const client = await session.client();
      const account = await session.account();
      await client.accounts.removeMember(account, email, { signal: session.signal });
      session.output.done({ account, user_email: email, removed: true }, `Removed ${email} from ${account}`);
    });
}
