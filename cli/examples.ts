/** Examples of commands, for their help and for docs/cli.md. */
import type { CommandUnknownOpts } from '@commander-js/extra-typings';

const examplesByCommand = new WeakMap<CommandUnknownOpts, readonly string[]>();

/** Adds examples to a command: command lines without `berth`. Returns the command. */
export function withExamples<C extends CommandUnknownOpts>(command: C, ...examples: readonly string[]): C {
  examplesByCommand.set(command, examples);
  return command;
}

export function examplesOf(command: CommandUnknownOpts): readonly string[] {
  return examplesByCommand.get(command) ?? [];
}

/** The examples as text for the end of a command's help. */
export function examplesText(command: CommandUnknownOpts): string {
  const examples = examplesOf(command);
  return examples.length === 0 ? '' : `\nExamples:\n${examples.map((example) => `  $ berth ${example}\n`).join('')}`;
}
