/** Runs one command: parses the command line, ends it on signals, and reports its error. */
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
  // A reader that has seen enough, such as `head`, is no error.
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
    // Parsing may have failed before it came to the option.
    const json = args.includes('--json');
    if (report.message !== '') new Output({ ...io, json }).error(report);
    return report.exitCode;
  }
}

/** The first signal ends the command in order, a second one at once. */
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

/** The parser's errors as ours: its suggestion becomes the hint. */
function ownError(error: unknown): unknown {
  if (!(error instanceof CommanderError)) return error;
  // The help was printed, because the command has only subcommands.
  if (error.code === 'commander.help') return usageError('');
  const [message = '', ...suggestion] = error.message.replace(/^error: /, '').split('\n');
  return usageError(message, suggestion.join(' ').replace(/^\((.*)\)$/, '$1') || undefined);
}
