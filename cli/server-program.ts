/** Runs programs of the server, which exist in a checkout or a container of Berth, but not in the npm package of the command line. */
import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { CliError } from './errors.ts';
import { inheritProgram } from './program-runner.ts';
import type { Session } from './session.ts';

/** For the description of each command that calls `runServer`. */
export const needsCheckout = 'Runs only in a checkout or a container of Berth.';

/** Runs a program of the server in place of this one, with our standard streams. */
export async function runServer(
  session: Session,
  { program = 'main/berth.ts', args }: { readonly program?: string; readonly args: readonly string[] },
): Promise<void> {
  const { io, signal, output } = session;
  const all = [join(serverFolder(), 'setup/run'), program, ...args, ...(output.json ? ['--json'] : [])];
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

/** Removes the variables of the command line, because the server refuses unknown variables. */
function serverEnvironment({
  BERTH_TOKEN: _token,
  BERTH_HOST: _host,
  BERTH_ACCOUNT: _account,
  ...env
}: Session['io']['env']) {
  return env;
}
