/** `berth admin audit`. */
import { Command } from '@commander-js/extra-typings';
import type { AuditRecord } from '../../../client/index.ts';
import { positive } from '../../arguments.ts';
import { withExamples } from '../../examples.ts';
import { safeJson, safeText } from '../../output/safe-text.ts';
import type { Session } from '../../session.ts';

const defaultLimit = 50;

export function auditCommand(session: Session) {
  const command = new Command('audit')
    .summary('show changes, with their users and addresses')
    .description(
      'Shows changes in the account, newest first; with --platform, changes outside of accounts. With --json, one record a line.',
    )
    .option('--platform', 'changes to users, accounts and log-ins')
    .option('--limit <count>', `how many records (default: ${defaultLimit})`, positive)
    .action(async ({ platform = false, limit = defaultLimit }) => {
      let count = 0;
      for await (const record of await records(session, platform, Math.min(limit, 1000))) {
        session.output.data(record, recordText(record));
        count += 1;
        if (count >= limit) return;
      }
    });
  return withExamples(command, 'admin audit --limit 10', 'admin audit --platform --json');
}

async function records(session: Session, platform: boolean, pageSize: number): Promise<AsyncGenerator<AuditRecord>> {
  const { accounts } = await session.client();
  const options = { pageSize, signal: session.signal };
  return platform ? accounts.platformAudit(options) : accounts.audit(await session.account(), options);
}

function recordText({ time, action, details, user_email, token_id, address, status }: AuditRecord): string {
  const actor = user_email ?? (token_id === null ? '-' : `token ${token_id}`);
  return safeText(`${time}  ${status ?? '-'}  ${action}  ${actor}  ${address}  ${safeJson(details)}`);
}
