/** `berth admin user`. */
import { Command } from '@commander-js/extra-typings';
import type { Invitation } from '../../../client/index.ts';
import { usageError } from '../../errors.ts';
import { withExamples } from '../../examples.ts';
import { safeText } from '../../output/safe-text.ts';
import { table } from '../../output/table.ts';
import { ago } from '../../output/time-text.ts';
import { collect } from '../../collect.ts';
import type { Session } from '../../session.ts';

export function userCommand(session: Session) {
  return new Command('user')
    .description('Creates, lists and changes users.')
    .addCommand(createCommand(session))
    .addCommand(listCommand(session))
    .addCommand(inviteCommand(session))
    .addCommand(updateCommand(session));
}

function createCommand(session: Session) {
  const command = new Command('create')
    .summary('create a user, and print an invitation')
    .description('Creates a user, and prints a link to set the password. The link is shown only once.')
    .argument('<email>', 'the e-mail address')
    .option('--admin', 'make the user an administrator')
    .action(async (email, { admin }) => {
      const client = await session.client();
      const user = { user_email: email, ...(admin && { is_admin: true }) };
      printInvitation(session, await client.users.create(user, { signal: session.signal }));
    });
  return withExamples(command, 'admin user create ada@example.com');
}

function inviteCommand(session: Session) {
  return new Command('invite')
    .summary('let a user set a new password')
    .description('Prints a link with which a user sets a new password. Earlier links become invalid.')
    .argument('<email>', 'the e-mail address')
    .action(async (email) => {
      const client = await session.client();
      printInvitation(session, await client.users.invite(email, { signal: session.signal }));
    });
}

function printInvitation({ output }: Session, invitation: Invitation): void {
  output.data(invitation, safeText(invitation.url));
  output.message(
    `Give this link to ${safeText(invitation.user_email)}. It is valid until ${safeText(invitation.expires_at)}`,
  );
}

function listCommand(session: Session) {
  return new Command('list')
    .alias('ls')
    .summary('list users')
    .description('Lists the users of the platform, oldest first.')
    .action(async () => {
      const client = await session.client();
      const users = await collect(client.users.list({ signal: session.signal }));
      const rows = users.map((user) => [
        user.user_email,
        user.is_admin ? 'administrator' : 'user',
        user.disabled ? 'locked out' : user.has_password ? 'active' : 'invited',
        ago(user.created_at),
      ]);
      session.output.data(users, table(['E-MAIL', 'KIND', 'STATE', 'CREATED'], rows));
    });
}

function updateCommand(session: Session) {
  const command = new Command('update')
    .summary('change whether a user is an administrator or locked out')
    .description('Makes a user an administrator, or no longer one; locks a user out, or ends the lock-out.')
    .argument('<email>', 'the e-mail address')
    .option('--admin', 'make the user an administrator')
    .option('--no-admin', 'the user is no longer an administrator')
    .option('--disable', 'lock the user out, with all tokens and log-ins')
    .option('--enable', 'end the lock-out')
    .action(async (email, { admin, disable, enable }) => {
      if (disable && enable) throw usageError('Use either --disable or --enable');
      const disabled = disable ? true : enable ? false : undefined;
      if (admin === undefined && disabled === undefined) throw usageError('Say what to change, see --help');
      const client = await session.client();
      const change = { ...(admin !== undefined && { is_admin: admin }), ...(disabled !== undefined && { disabled }) };
      await client.users.update(email, change, { signal: session.signal });
      session.output.done({ user_email: email, ...change }, `Changed the user ${email}`);
    });
  return withExamples(command, 'admin user update ada@example.com --disable');
}
