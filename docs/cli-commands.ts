/** Generates the reference page of the command line from its table of commands. */
import type { CommandUnknownOpts } from '@commander-js/extra-typings';
import { exitCodes } from '../cli/errors.ts';
import { visible } from '../cli/commands/completion.ts';
import { examplesOf } from '../cli/examples.ts';
import { newProgram } from '../cli/program.ts';
import { Session } from '../cli/session.ts';

const meanings: Readonly<Record<keyof typeof exitCodes, string>> = {
  success: 'success',
  error: 'an error',
  usage: 'the command line, or a value in it, is not valid',
  authentication: 'not logged in, or the log-in does not allow it',
  notFound: 'there is no such service, backend, image or key',
  timeout: 'the given time has expired',
  interrupted: 'stopped by Ctrl-C (SIGINT)',
  terminated: 'stopped by SIGTERM',
};

/** Returns the page in Markdown. */
export function cliText(): string {
  const { stdin, stdout, stderr } = process;
  const session = new Session({ env: {}, stdin, stdout, stderr, cwd: '/' }, new AbortController().signal);
  const program = newProgram(session);
  const codes = Object.entries(exitCodes).map(
    ([name, code]) => `| ${code} | ${meanings[name as keyof typeof exitCodes]} |`,
  );
  return `# The command line

\`berth\` pushes images, connects to backends and manages a platform, over HTTP. \`npm run build:cli\` makes its npm package: one file
without dependencies, for Node 20 or newer. In a checkout, \`bin/berth\` runs the same commands.

\`\`\`
berth login --host https://berth.example
berth push draw --create
berth connect draw --key room-1 --wait
\`\`\`

## Conventions

- Data goes to standard output, messages to standard error. With \`--json\`, data is one line of JSON; streams (\`logs\`, \`metrics\`,
  \`audit\`, \`doctor\`) are one object a line. Errors are then \`{"error":{"code","message","hint","status","id"}}\` on standard error.
- \`BERTH_HOST\`, \`BERTH_TOKEN\` and \`BERTH_ACCOUNT\` replace a log-in, for scripts; options override them. A stored token is sent only to
  its own platform.
- Log-ins are stored in \`$XDG_CONFIG_HOME/berth/config.json\` (\`~/.config\` by default), which only its owner can read.
- Without a terminal, or with \`--no-input\`, a command never asks: it fails and names the option that answers the question.
- Commands read secrets from standard input, a file or a variable, never from the command line, which every user of the machine can read.
- Text from servers and containers cannot control the terminal: control characters are shown as escapes, such as \`\\x1b\`.
- \`NO_COLOR\`, \`CLICOLOR\` and \`CLICOLOR_FORCE\` control colours.
- The names of commands in existing tools are accepted: \`spawn\`, \`terminate\`, \`images\`, \`service images\`, \`backend:list\` and so on.

| exit code | meaning |
|---|---|
${codes.join('\n')}

## Options of every command

${optionsTable(program)}${visible(program)
    .filter((command) => command.name() !== 'help')
    .map(commandText)
    .join('')}`;
}

function commandText(command: CommandUnknownOpts): string {
  const subcommands = visible(command).filter((each) => each.name() !== 'help');
  if (subcommands.length > 0) {
    const level = path(command).length === 1 ? '##' : '###';
    return `\n${level} berth ${path(command).join(' ')}\n\n${escaped(command.description())}\n${subcommands.map(commandText).join('')}`;
  }
  const [only, ...others] = path(command);
  const level = others.length === 0 ? '##' : '###';
  const name = [only, ...others].join(' ');
  const aliases = command.aliases().map((alias) => `\`${alias}\``);
  const args = command.registeredArguments.map((each) => `| \`${each.name()}\` | ${escaped(each.description)} |`);
  const examples = examplesOf(command).map((example) => `berth ${example}`);
  return [
    `\n${level} berth ${name}\n`,
    `\`berth ${name} ${command.usage()}\`\n`,
    `${escaped(command.description())}${aliases.length > 0 ? ` Also: ${aliases.join(', ')}.` : ''}\n`,
    ...(args.length > 0 ? [`| argument | meaning |\n|---|---|\n${args.join('\n')}\n`] : []),
    ...(command.options.some(({ hidden }) => !hidden) ? [optionsTable(command)] : []),
    ...(examples.length > 0 ? [`\`\`\`\n${examples.join('\n')}\n\`\`\`\n`] : []),
  ].join('\n');
}

function optionsTable(command: CommandUnknownOpts): string {
  const rows = command.options
    .filter(({ hidden }) => !hidden)
    .map(({ flags, description }) => `| \`${flags}\` | ${escaped(description)} |`);
  return `| option | meaning |\n|---|---|\n${rows.join('\n')}\n`;
}

function path(command: CommandUnknownOpts): string[] {
  return command.parent ? [...path(command.parent), command.name()] : [];
}

function escaped(text: string): string {
  return text.replaceAll('|', String.raw`\|`).replaceAll('<', '&lt;');
}
