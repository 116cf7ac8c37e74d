/** `berth collect [--dry-run] [--json]` and `berth verify [--repair] [--json]`. */
import { gcEvent, verificationEvent } from '../../registry/index.ts';
import { gcLine, verificationLine } from './gc-report.ts';
import { writeEvent } from './command-request.ts';
import type { CommandRequest } from './command-request.ts';
import { askForTask } from './task-client.ts';

/** Collects garbage. Returns the exit code: 1 if the collection was not completed. */
export async function collectCommand(asked: CommandRequest & { readonly dryRun: boolean }): Promise<number> {
  const query = new URLSearchParams({ ...(asked.dryRun && { dry_run: 'yes' }) });
  let isDone = false;
  for await (const line of askForTask({ ...asked, name: 'collect', query })) {
    const event = gcEvent.safeParse(line).data;
    isDone = event?.type === 'collected';
    writeEvent(asked, line, event && gcLine(event, asked.dryRun));
  }
  return isDone ? 0 : 1;
}

/** Checks what is stored. Returns the exit code: 1 if the check was not completed, or a problem remains. */
export async function verifyCommand(asked: CommandRequest & { readonly repair: boolean }): Promise<number> {
  const query = new URLSearchParams({ ...(asked.repair && { repair: 'yes' }) });
  let isGood = false;
  for await (const line of askForTask({ ...asked, name: 'verify', query })) {
    const event = verificationEvent.safeParse(line).data;
    isGood = event?.type === 'verified' && event.problems === event.repaired;
    writeEvent(asked, line, event && verificationLine(event));
  }
  return isGood ? 0 : 1;
}
