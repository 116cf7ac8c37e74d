/** Runs a command: parses the command line, stops at signals, and reports errors. */
import { CommanderError } from 'commander';
import { exitCodes, interruption, reportOf, usageError } from './errors.ts';
import { Output } from './output/output.ts';
import { newProgram } from './program.ts';
import { Session } from './session.ts';
import type { Io } from './session.ts';

/** Runs a command, and returns the exit code. */
export async function run(args: readonly string[], io: Io): Promise<number> {
  const stop = new AbortController();
  stopOnSignals(stop);
  // A reader that closes the pipe early, such as `head`, is not an error.
  for (const stream of [io.stdout, io.stderr]) {
    stream.on('error', (error: NodeJS.ErrnoException) => process.exit(error.code === 'EPIPE' ? 0 : exitCodes.error));
  }
  const session = new Session(io, stop.signal);
  try {
    await newProgram(session).parseAsync(withSpaces(args), { from: 'user' });
    return session.exitCode;
  } catch (error) {
    if (error instanceof CommanderError && error.exitCode === 0) return exitCodes.success;
    const report = reportOf(stop.signal.aborted ? stop.signal.reason : ownError(error));
    // Not from the session, because parsing may have failed before this option.
    const json = args.includes('--json');
    if (report.message !== '') new Output({ ...io, json }).error(report);
    return report.exitCode;
  }
}

/** The first signal stops the command in order, the second ends the process at once. */
function stopOnSignals(stop: AbortController): void {
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.on(signal, () => {
      const reason = interruption(signal);
      if (stop.signal.aborted) process.exit(reason.exitCode);
      stop.abort(reason);
    });
  }
}

/** Existing command lines also accept `backend:list` for `backend list`. */
function withSpaces([first = '', ...rest]: readonly string[]): string[] {
  return /^[a-z]+:[a-z-]+$/.test(first)
    ? [...first.split(':'), ...rest]
    : [first, ...rest].filter((arg, i) => i > 0 || arg !== '');
}

/** Converts an error of the parser, whose suggestion becomes the hint. */
function ownError(error: unknown): unknown {
  if (!(error instanceof CommanderError)) return error;
  // The command has only subcommands, so the parser has printed its help.
  if (error.code === 'commander.help') return usageError('');
  const [message = '', ...suggestion] = error.message.replace(/^error: /, '').split('\n');
  return usageError(message, suggestion.join(' ').replace(/^\((.*)\)$/, '$1') || undefined);
}
