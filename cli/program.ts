/** The tree of all commands. */
import { Command, Help, Option } from '@commander-js/extra-typings';
import type { CommandUnknownOpts } from '@commander-js/extra-typings';
import { adminCommand } from './commands/admin/admin.ts';
import { backendCommand, stopCommand } from './commands/backend.ts';
import { logsCommand } from './commands/backend-streams.ts';
import { completeCommand, completionCommand } from './commands/completion.ts';
import { connectCommand } from './commands/connect.ts';
import { doctorCommand } from './commands/doctor.ts';
import { environmentCommand } from './commands/environment.ts';
import { imageCommand, imagesCommand } from './commands/image.ts';
import { loginCommand, logoutCommand } from './commands/login.ts';
import { nodeCommand } from './commands/node.ts';
import { pushCommand } from './commands/push.ts';
import { collectCommand, quotaCommand, registryCommand, verifyCommand } from './commands/registry.ts';
import { devCommand, serveCommand, startCommand } from './commands/server.ts';
import { serviceCommand } from './commands/service.ts';
import { spawnCommand } from './commands/spawn.ts';
import { tokenCommand } from './commands/token.ts';
import { whoamiCommand } from './commands/whoami.ts';
import { examplesText } from './examples.ts';
import type { Session } from './session.ts';
import { version } from './version.ts';

/** A command of the program. `hidden`: a name that existing tools use, and that help does not show. */
interface Entry {
  readonly command: CommandUnknownOpts;
  readonly hidden?: boolean;
}

export function newProgram(session: Session): CommandUnknownOpts {
  const program = new Command('berth')
    .description('Push container images, connect to session backends, and manage them')
    .version(version, '-V, --version', 'print the version')
    .option('--json', 'print data as JSON; streams as one JSON object a line')
    .option('--host <url>', 'the platform (BERTH_HOST; default: the platform of the last log-in)')
    .option('--account <name>', 'the account (BERTH_ACCOUNT; default: the account of the log-in)')
    .addOption(new Option('--no-input', 'never ask, as without a terminal'))
    .helpOption('-h, --help', 'show help')
    .helpCommand('help [command]', 'show help about a command')
    .configureHelp({ showGlobalOptions: true, visibleGlobalOptions })
    .configureOutput({
      writeOut: (text) => void session.io.stdout.write(text),
      writeErr: (text) => void session.io.stderr.write(text),
      // `run` reports the error.
      outputError: () => {},
    })
    .exitOverride()
    .hook('preAction', (_program, command) => session.configure(command.optsWithGlobals()));
  for (const { command, hidden = false } of entries(session)) add(program, command, hidden);
  return program;
}

function entries(session: Session): Entry[] {
  return [
    { command: loginCommand(session) },
    { command: logoutCommand(session) },
    { command: whoamiCommand(session) },
    { command: pushCommand(session) },
    { command: connectCommand(session) },
    { command: logsCommand(session) },
    { command: backendCommand(session) },
    { command: serviceCommand(session) },
    { command: environmentCommand(session) },
    { command: imageCommand(session) },
    { command: tokenCommand(session) },
    { command: nodeCommand(session) },
    { command: registryCommand(session) },
    { command: adminCommand(session) },
    { command: doctorCommand(session) },
    { command: devCommand(session) },
    { command: startCommand(session) },
    { command: serveCommand(session) },
    { command: completionCommand(session) },
    { command: completeCommand(session), hidden: true },
    { command: stopCommand(session, 'terminate'), hidden: true },
    { command: spawnCommand(session), hidden: true },
    { command: imagesCommand(session), hidden: true },
    { command: collectCommand(session, 'collect'), hidden: true },
    { command: verifyCommand(session), hidden: true },
    { command: quotaCommand(session), hidden: true },
  ];
}

/** The options of all commands, except those that this command redefines (`berth dev --host`). */
function visibleGlobalOptions(command: CommandUnknownOpts): Option[] {
  const help = new Help();
  help.showGlobalOptions = true;
  const own = new Set(command.options.map(({ long }) => long));
  return help.visibleGlobalOptions(command).filter(({ long }) => !own.has(long));
}

/** Adds a command with its subcommands, which inherit the settings of the program. */
function add(parent: CommandUnknownOpts, command: CommandUnknownOpts, hidden: boolean): void {
  inherit(parent, command);
  parent.addCommand(command, { hidden });
}

function inherit(parent: CommandUnknownOpts, command: CommandUnknownOpts): void {
  command.copyInheritedSettings(parent);
  const examples = examplesText(command);
  if (examples !== '') command.addHelpText('after', examples);
  for (const each of command.commands) inherit(command, each);
}
