/** Commands that run a platform on this machine: `start`, `serve` and `dev`. */
import { Command } from '@commander-js/extra-typings';
import { several } from '../arguments.ts';
import { withExamples } from '../examples.ts';
import { needsCheckout, runServer } from '../server-program.ts';
import type { Session } from '../session.ts';

export function startCommand(session: Session) {
  return new Command('start')
    .summary('install what is missing and run a platform with a sample application (in a checkout of Berth)')
    .description(
      `Runs the whole platform on this machine, with a sample application, as "npm start" does. Installs what is missing: the dependencies in its folder and, as root, Docker Engine. ${needsCheckout}`,
    )
    .option('--no-install', 'install no packages on this machine')
    .action(async ({ install }) => {
      await runServer(session, { program: 'setup/start.ts', args: install ? [] : ['--no-install'] });
    });
}

export function serveCommand(session: Session) {
  const command = new Command('serve')
    .summary('run the platform, or some of its components (in a checkout of Berth)')
    .description(
      `Runs the platform, or some of its components, until it receives SIGINT or SIGTERM. docs/configuration.md lists its settings. ${needsCheckout}`,
    )
    .option('--roles <roles>', 'the components of this process, a list of registry,api,worker,proxy (default: all)')
    .action(async ({ roles }) => {
      await runServer(session, { args: ['serve', ...(roles === undefined ? [] : ['--roles', roles])] });
    });
  return withExamples(command, 'serve', 'serve --roles api,proxy');
}

/** The same options as in `main/dev/settings.ts`. */
export function devCommand(session: Session) {
  const command = new Command('dev')
    .summary('serve the image of a folder while you work on it (in a checkout of Berth)')
    .description(
      `Builds the Dockerfile of this folder, and serves its image on this machine as the platform would. Connects need no access token, and work for any account and service. Builds again when files change. On a terminal, shows backends, keys, connections and logs. See docs/dev.md. ${needsCheckout}`,
    )
    .option('-f, --file <path>', 'the Dockerfile (default: Dockerfile in the context)')
    .option('-c, --context <folder>', 'the folder of the build (default: the current folder)')
    .option('--target <stage>', 'the stage of the Dockerfile')
    .option('--build-arg <name=value>', 'an argument of the build, may be repeated', several)
    .option('-i, --image <image>', 'run this image instead of a Dockerfile')
    .option('-p, --port <port>', 'the port; 0: a free port (default: 8080)')
    .option('--host <address>', 'the address to listen on (default: 127.0.0.1)')
    .option('--no-watch', 'do not build again when files change')
    .option('--no-screen', 'write plain lines on a terminal, too')
    .option('--config <path>', 'the file with settings (default: berth.config.json, if there is one)')
    .action(async ({ buildArg = [], watch, screen, ...options }, { parent }) => {
      // The parser reads `--host` as the option of all commands.
      const { host } = (parent?.opts() ?? {}) as { host?: string };
      const named = Object.entries({ ...options, host }).flatMap(([name, value]) =>
        value === undefined ? [] : [`--${name}`, value],
      );
      const args = [...named, ...buildArg.flatMap((each) => ['--build-arg', each])];
      await runServer(session, {
        args: ['dev', ...args, ...(watch ? [] : ['--no-watch']), ...(screen ? [] : ['--no-screen'])],
      });
    });
  return withExamples(command, 'dev', 'dev --port 3000 --context ../draw', 'dev --image draw:latest');
}
