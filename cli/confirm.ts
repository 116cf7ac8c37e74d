/** The consent to a deletion. */
import { CliError, usageError } from './errors.ts';
import type { Session } from './session.ts';

/** Asks before something is deleted, unless `--yes` was given. The person types the name, because an Enter too many must not delete. */
export async function confirmDeletion(
  { prompts }: Session,
  { what, name, yes }: { readonly what: string; readonly name: string; readonly yes: boolean },
): Promise<void> {
  if (yes) return;
  const message = `${what} Type ${name} to go on`;
  if (!prompts.canAsk) throw usageError(`There is no terminal to ask: ${what}`, 'Use --yes');
  const typed = await prompts.text({ message, instead: '--yes' });
  if (typed !== name) throw new CliError('Cancelled', `That is not ${name}: nothing was deleted`);
}
