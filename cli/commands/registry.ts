/** Commands for stored images, which run on the machine that stores them. */
import { Command } from '@commander-js/extra-typings';
import { withExamples } from '../examples.ts';
import { needsCheckout, runServer } from '../server-program.ts';
import type { Session } from '../session.ts';

const where = `${needsCheckout} Run it on the machine that has the data.`;

export function registryCommand(session: Session) {
  return new Command('registry')
    .summary('collect garbage, verify stored images (in a checkout of Berth)')
    .description(`Collects garbage, and verifies stored images. ${where}`)
    .addCommand(collectCommand(session, 'gc').alias('collect'))
    .addCommand(verifyCommand(session));
}

/** `registry gc`; also `collect`, its earlier name. */
export function collectCommand(session: Session, name: string) {
  return new Command(name)
    .summary('delete content that no image needs')
    .description(`Deletes content that no tag, image, environment or backend needs. ${where}`)
    .option('-n, --dry-run', 'only report what would be deleted')
    .action(async ({ dryRun }) => {
      await runServer(session, { args: ['collect', ...(dryRun ? ['--dry-run'] : [])] });
    });
}

export function verifyCommand(session: Session) {
  return new Command('verify')
    .summary('read all stored images and report damage')
    .description(`Reads all stored images and reports damage. Exits with 1 if a problem remains. ${where}`)
    .option('--repair', 'delete damaged content, so that it can be pushed again')
    .action(async ({ repair }) => {
      await runServer(session, { args: ['verify', ...(repair ? ['--repair'] : [])] });
    });
}

export function quotaCommand(session: Session) {
  const command = new Command('quota')
    .summary('show or set how much an account may store (in a checkout of Berth)')
    .description(
      `Shows how much each account stores in the registry, and its limit, or sets the limit of an account. ${where}`,
    )
    .argument('[account]', 'show only this account')
    .argument('[size]', 'the limit, such as 50GiB; none: no limit; default: the limit of all accounts')
    .action(async (account, size) => {
      await runServer(session, { args: ['quota', ...[account, size].flatMap((each) => each ?? [])] });
    });
  return withExamples(command, 'admin quota', 'admin quota acme 50GiB');
}
