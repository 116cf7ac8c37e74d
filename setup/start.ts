/**
 * The program of `npm start`: prepares a Docker Engine, opens the whole platform in this process, and pushes and connects to the
 * sample application. Runs until it receives a stop signal.
 */
import { flushCompileCache } from 'node:module';
import { parseArgs } from 'node:util';
import { openLog } from '../core/log/log.ts';
import { loadConfig } from '../main/config/config.ts';
import { openWholePlatform } from '../main/platform.ts';
import { loopbackHosts } from '../main/process/listener.ts';
import { runProgram, signalExitCode, sizeThreadPool, stopSignal } from '../main/process/program.ts';
import { ensureDockerEngine } from './docker-engine.ts';
import { startSample } from './sample.ts';
import { summaryForPeople, summaryForPrograms } from './summary.ts';
import { openTerminal } from './terminal.ts';

const usage = `Usage: npm start [-- OPTIONS], or berth start [OPTIONS]

Starts Berth on this machine, with a sample application. Installs what is missing: the dependencies in this folder and,
as root, Docker Engine. Configuration comes from the environment, see docs/configuration.md.

  --json         when everything is ready, write all addresses as one line of JSON to standard output
                 ("npm start --json" omits npm's own lines)
  --no-install   do not install packages on this machine
  --help         print this text
`;

sizeThreadPool(process.env);
process.exitCode = await main(process.argv.slice(2), process.env);

async function main(args: string[], environment: NodeJS.ProcessEnv): Promise<number> {
  const options = parseOptions(args, environment);
  if (options === undefined || options.help) {
    (options ? process.stdout : process.stderr).write(usage);
    return options ? 0 : 2;
  }
  return await runProgram(() => start(options, environment));
}

interface Options {
  readonly json: boolean;
  readonly install: boolean;
  readonly help: boolean;
}

/** Parses the options. npm passes on the option of `npm start --json` as an environment variable. */
function parseOptions(args: string[], environment: NodeJS.ProcessEnv): Options | undefined {
  try {
    const { values } = parseArgs({
      args,
      options: { json: { type: 'boolean' }, 'no-install': { type: 'boolean' }, help: { type: 'boolean', short: 'h' } },
    });
    return {
      json: values.json ?? environment['npm_config_json'] === 'true',
      install: !values['no-install'],
      help: values.help ?? false,
    };
  } catch (error) {
    process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n\n`);
    return undefined;
  }
}

async function start(options: Options, environment: NodeJS.ProcessEnv): Promise<number> {
  const terminal = openTerminal(process.stderr);
  const interrupted = new AbortController();
  const stopped = stopSignal();
  void stopped.then(() => interrupted.abort());

  // Checked before anything is installed, so that a misspelt variable is reported at once.
  loadConfig({ ...sessionDomain(environment), ...environment });
  const engine = await ensureDockerEngine({ terminal, environment, mayInstall: options.install });
  if (interrupted.signal.aborted) return signalExitCode(await stopped);
  const config = loadConfig({
    BERTH_LOG_LEVEL: 'warn', // Lines about each request would hide the output of this program.
    ...sessionDomain(environment),
    ...environment,
    ...(engine.running && { DOCKER_HOST: engine.host }),
  });
  await using platform = await terminal.withProgress('Opening the platform', async () => {
    return await openWholePlatform({ config, log: openLog(config.logLevel) });
  });
  const sample = await startSample({ platform, config, engine, terminal, signal: interrupted.signal });
  if (interrupted.signal.aborted) return signalExitCode(await stopped);
  flushCompileCache();
  const result = { platform, sample, hasMounts: config.mountFolder !== 'off' };
  terminal.print(summaryForPeople(result, terminal));
  if (options.json) process.stdout.write(`${summaryForPrograms(result)}\n`);
  await stopped;
  terminal.print('Stopping. Press Ctrl-C again to force it.');
  return 0;
}

/** Sessions get hosts below `localhost`, which browsers resolve to their own machine, unless other machines reach the proxy. */
function sessionDomain({ BERTH_LISTEN_HOST: host, BERTH_PROXY_URL: proxyUrl }: NodeJS.ProcessEnv) {
  const isLocal = !proxyUrl && (!host || loopbackHosts.has(host));
  return isLocal ? { BERTH_SESSION_DOMAIN: 'localhost' } : {};
}
