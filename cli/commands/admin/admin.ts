/** `berth admin`: what administrators and owners of accounts do. */
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
      'Looks after users, accounts and what they may do. Most commands need the log-in of an administrator or an owner.',
    )
    .addCommand(userCommand(session))
    .addCommand(accountCommand(session))
    .addCommand(memberCommand(session))
    .addCommand(limitsCommand(session))
    .addCommand(quotaCommand(session))
    .addCommand(trustCommand(session))
    .addCommand(auditCommand(session));
}
