/** `berth completion`: commands and options for the Tab key of shells. */
import { Argument, Command } from '@commander-js/extra-typings';
import type { CommandUnknownOpts } from '@commander-js/extra-typings';
import { withExamples } from '../examples.ts';
import type { Session } from '../session.ts';

/** The scripts call the program for the candidates, so that they stay correct when the program changes. */
const scripts = {
  bash: `_berth() {
  local IFS=$'\\n'
  COMPREPLY=($(berth complete -- "\${COMP_WORDS[@]:1:COMP_CWORD}" 2> /dev/null))
}
complete -o default -F _berth berth
`,
  zsh: `#compdef berth
_berth() {
  local -a found
  found=("\${(@f)$(berth complete -- "\${(@)words[2,CURRENT]}" 2> /dev/null)}")
  if [[ -n "$found" ]]; then compadd -- "\${found[@]}"; else _files; fi
}
compdef _berth berth
`,
  fish: `complete -c berth -a '(berth complete -- (commandline -opc)[2..] (commandline -ct) 2> /dev/null)'
`,
} as const;

type Shell = keyof typeof scripts;

export function completionCommand({ io }: Session) {
  const shells = Object.keys(scripts) as Shell[];
  const command = new Command('completion')
    .summary('print a completion script for a shell')
    .description('Prints the script with which a shell completes commands and options.')
    .addArgument(new Argument('<shell>', 'the shell').choices(shells))
    .action((shell) => void io.stdout.write(scripts[shell]));
  return withExamples(
    command,
    'completion bash > ~/.local/share/bash-completion/completions/berth',
    'completion zsh > "${fpath[1]}/_berth"',
    'completion fish > ~/.config/fish/completions/berth.fish',
  );
}

/** The command that the scripts call: prints the candidates for the last word. */
export function completeCommand({ io }: Session) {
  return new Command('complete')
    .argument('[words...]')
    .allowUnknownOption()
    .action((words, _options, command) => {
      const found = completions(command.parent as CommandUnknownOpts, words);
      io.stdout.write(found.map((each) => `${each}\n`).join(''));
    });
}

/** The candidates for the last word. */
export function completions(program: CommandUnknownOpts, words: readonly string[]): string[] {
  const typed = words.at(-1) ?? '';
  let command = program;
  for (const word of words.slice(0, -1)) command = subcommand(command, word) ?? command;
  const chain = ancestors(command);
  const candidates = typed.startsWith('-')
    ? chain.flatMap(({ options }) => options.filter(({ hidden }) => !hidden).map(({ long }) => long ?? ''))
    : visible(command).map((each) => each.name());
  return [...new Set(candidates)].filter((each) => each !== '' && each.startsWith(typed));
}

function subcommand(command: CommandUnknownOpts, word: string): CommandUnknownOpts | undefined {
  return command.commands.find((each) => each.name() === word || each.aliases().includes(word));
}

function ancestors(command: CommandUnknownOpts): CommandUnknownOpts[] {
  return command.parent ? [command, ...ancestors(command.parent)] : [command];
}

/** The subcommands that help shows. */
export function visible(command: CommandUnknownOpts): CommandUnknownOpts[] {
  const shown = new Set(command.createHelp().visibleCommands(command));
  return command.commands.filter((each) => shown.has(each));
}
