/** The command line of `npm test`. */
import type { InstallPolicy } from '../kit/packages/apt-packages.ts';

export const usage = `Usage: npm test [-- OPTIONS] [FILTERS] [OPTIONS OF VITEST]

Runs all tests once, or those whose path contains a filter, and starts the servers that they need.

  --yes          install missing packages without asking
  --no-install   install no packages and download no MongoDB; tests that need them are skipped
  --help         this text

As root on Debian and Ubuntu, missing packages are installed with apt-get: at a terminal after you agree; without a question if CI is
set or there is no terminal. MONGODB_URL and REDIS_URL name servers to use instead of starting new ones.
`;

export interface RunOptions {
  readonly help: boolean;
  readonly install: InstallPolicy;
  /** The arguments for vitest, without the projects. */
  readonly vitestArgs: string[];
  /** The chosen projects; empty for all. */
  readonly chosen: string[];
}

/** Separates the options of `npm test` from those of vitest. */
export function parseOptions(args: readonly string[], environment: NodeJS.ProcessEnv): RunOptions {
  const chosen: string[] = [];
  const vitestArgs: string[] = [];
  const rest = args.filter((each) => !['--yes', '--no-install', '--help', '-h'].includes(each));
  for (let i = 0; i < rest.length; i++) {
    const arg = rest[i] ?? '';
    if (arg === '--project') chosen.push(rest[++i] ?? '');
    else if (arg.startsWith('--project=')) chosen.push(arg.slice('--project='.length));
    else vitestArgs.push(arg);
  }
  return {
    help: args.includes('--help') || args.includes('-h'),
    install: installPolicy(args, environment),
    vitestArgs,
    chosen,
  };
}

/** A script must not wait for an answer: only a user at a terminal is asked. */
function installPolicy(args: readonly string[], { CI }: NodeJS.ProcessEnv): InstallPolicy {
  if (args.includes('--no-install')) return 'no';
  const isAutomatic = args.includes('--yes') || (CI !== undefined && CI !== '' && CI !== 'false');
  return isAutomatic || !process.stdin.isTTY || !process.stderr.isTTY ? 'yes' : 'ask';
}
