/** The confirmation of a deletion. */
import { CliError, usageError } from './errors.ts';
import type { Session } from './session.ts';

/** Asks for confirmation, unless `--yes` is set. The user types the name, so that an accidental Enter deletes nothing. */
export async function confirmDeletion(
  { prompts }: Session,
  { what, name, yes }: { readonly what: string; readonly name: string; readonly yes: boolean },
): Promise<void> {
  if (yes) return;
  const message = `${what} Type ${name} to continue`;
  if (!prompts.canAsk) throw usageError(`There is no terminal to ask: ${what}`, 'Use --yes');
  const typed = await prompts.text({ message, instead: '--yes' });
  if (typed !== name) throw new CliError('Cancelled', `The name is not ${name}: nothing was deleted`);
}
