/** Commands of the server itself: they run in a checkout or the image of Berth, on the machine that has its data. */
import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Command } from '@commander-js/extra-typings';
import { CliError } from '../errors.ts';
import { withExamples } from '../examples.ts';
import { inheritProgram } from '../program-runner.ts';
import type { Session } from '../session.ts';

export function serveCommand(session: Session) {
  const command = new Command('serve')
    .summary('run the platform (in a checkout of Berth)')
    .description(
      'Runs the platform, or some of its components, until it receives SIGINT or SIGTERM. Needs Node 24 and a checkout of Berth; docs/configuration.md lists its settings.',
    )
    .option('--roles <roles>', 'the components of this process, a list of registry,api,worker,proxy (default: all)')
    .action(
      async ({ roles }) => await runServer(session, ['serve', ...(roles === undefined ? [] : ['--roles', roles])]),
    );
  return withExamples(command, 'serve', 'serve --roles api,proxy');
}

export function registryCommand(session: Session) {
  return new Command('registry')
    .summary('stored images (in a checkout of Berth)')
    .description('Looks after the stored images, on the machine that has them.')
    .addCommand(collectCommand(session, 'gc').alias('collect'))
    .addCommand(verifyCommand(session));
}

/** `registry gc`; also `collect`, its earlier name. */
export function collectCommand(session: Session, name: string) {
  return new Command(name)
    .summary('delete what no image needs')
    .description('Deletes what no tag, image, environment or backend needs.')
    .option('-n, --dry-run', 'only report what would be deleted')
    .action(async ({ dryRun }) => await runServer(session, ['collect', ...(dryRun ? ['--dry-run'] : [])]));
}

export function verifyCommand(session: Session) {
  return new Command('verify')
    .summary('read all stored images and report damage')
    .description('Reads all stored images and reports damage. Exits with 1 if a problem remains.')
    .option('--repair', 'delete what is damaged, so that it can be pushed again')
    .action(async ({ repair }) => await runServer(session, ['verify', ...(repair ? ['--repair'] : [])]));
}

export function quotaCommand(session: Session) {
  const command = new Command('quota')
    .summary('show or set how much an account may store')
    .description('Shows how much each account stores in the registry, and its limit, or sets the limit of an account.')
    .argument('[account]', 'show this account only')
    .argument('[size]', 'the limit, such as 50GiB; none: no limit; default: the limit of all accounts')
    .action(async (account, size) => {
      await runServer(session, ['quota', ...[account, size].flatMap((each) => each ?? [])]);
    });
  return withExamples(command, 'admin quota', 'admin quota acme 50GiB');
}

/** Runs a command of the server in its place: its output is ours. */
async function runServer(session: Session, args: readonly string[]): Promise<void> {
  const { io, signal, output } = session;
  const root = serverFolder();
  const all = [join(root, 'setup/run'), 'main/berth.ts', ...args, ...(output.json ? ['--json'] : [])];
  session.exitCode = await inheritProgram('sh', all, { env: serverEnvironment(io.env), cwd: io.cwd, signal });
}

/** The folder of the server: this file is in `cli/`, or bundled in `cli/dist`. */
function serverFolder(): string {
  const here = dirname(fileURLToPath(import.meta.url));
  const root = ['..', '../..'].map((path) => join(here, path)).find((path) => existsSync(join(path, 'main/berth.ts')));
  if (root !== undefined) return root;
  throw new CliError('NoServer', 'This installation of berth has no server', {
    hint: 'Run the command in a checkout or a container of Berth, on the machine that has its data',
  });
}

/** The variables of the command line are no settings of the server, which refuses what it does not know. */
function serverEnvironment({
  BERTH_TOKEN: _token,
  BERTH_HOST: _host,
  BERTH_ACCOUNT: _account,
  ...env
}: Session['io']['env']) {
  return env;
}
