/** `berth admin`: commands for administrators and owners of accounts. */
import { Command } from '@commander-js/extra-typings';
import type { Session } from '../../session.ts';
import { quotaCommand } from '../registry.ts';
import { accountCommand, limitsCommand } from './accounts.ts';
import { auditCommand } from './audit.ts';
import { memberCommand } from './members.ts';
import { trustCommand } from './trust.ts';
import { userCommand } from './users.ts';

export function adminCommand(session: Session) {
  return new Command('admin')
    .summary('users, accounts, members, limits, audit')
    .description(
      'Manages users and accounts, with their members and limits. Most commands need the log-in of an administrator or an owner.',
    )
    .addCommand(userCommand(session))
    .addCommand(accountCommand(session))
    .addCommand(memberCommand(session))
    .addCommand(limitsCommand(session))
    .addCommand(quotaCommand(session))
    .addCommand(trustCommand(session))
    .addCommand(auditCommand(session));
}
