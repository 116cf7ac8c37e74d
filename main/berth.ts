/** The process: `berth dev`, `serve`, `collect`, `verify` or `quota`, as `bin/berth` starts it. */
import { flushCompileCache } from 'node:module';
import { parseArgs } from 'node:util';
import { openLog } from '../core/log/log.ts';
import { loadConfig } from './config/config.ts';
import { openPlatform } from './platform.ts';
import type { Platform } from './platform.ts';
import { parseRoles } from './config/roles.ts';
import type { Roles } from './config/roles.ts';
import { runProgram, sizeThreadPool, stopSignal } from './process/program.ts';

const usage = `Usage: berth dev [OPTIONS]
       berth serve [--roles ROLES] [--json]
       berth collect [--dry-run] [--json]
       berth verify [--repair] [--json]
       berth quota [ACCOUNT [SIZE]] [--json]

Configuration comes from the environment, see docs/configuration.md. "berth COMMAND --help" describes a command.
`;

const options = {
  roles: { type: 'string' },
  'dry-run': { type: 'boolean' },
  repair: { type: 'boolean' },
  json: { type: 'boolean', default: false },
  help: { type: 'boolean', default: false },
} as const;

type Options = ReturnType<typeof parseArgs<{ options: typeof options }>>['values'];

/** The options of each command, besides --json, and the maximum number of its arguments. */
const commands: Readonly<Record<string, { readonly options: readonly string[]; readonly maxWords: number }>> = {
  serve: { options: ['roles'], maxWords: 0 },
  collect: { options: ['dry-run'], maxWords: 0 },
  verify: { options: ['repair'], maxWords: 0 },
  quota: { options: [], maxWords: 2 },
};

sizeThreadPool(process.env);
// Everything is closed by now; a timer or socket that a library left open must not keep the process running.
process.exit(await main(process.argv.slice(2)));

async function main(args: string[]): Promise<number> {
  if (args[0] === 'dev') {
    const { devCommand } = await import('./dev/command.ts');
    return await runProgram(() => devCommand({ args: args.slice(1), environment: process.env, folder: process.cwd() }));
  }
  const { values, positionals } = parse(args);
  const [command = '', ...words] = positionals;
  if (values.help || !isValid(command, words, values)) {
    process.stderr.write(usage);
    return values.help ? 0 : 2;
  }
  return await runProgram(async () => {
    if (command === 'serve') return await serve(parseRoles(values.roles), values.json);
    return await runTask(command, words, values);
  });
}

function isValid(command: string, words: readonly string[], values: Options): boolean {
  const accepted = Object.hasOwn(commands, command) ? commands[command] : undefined;
  if (!accepted || words.length > accepted.maxWords) return false;
  return Object.keys(values).every((option) => [...accepted.options, 'json', 'help'].includes(option));
}

/** Parses the command line. For an unknown option, prints the error and returns no command, so the caller prints the usage. */
function parse(args: string[]): { values: Options; positionals: string[] } {
  try {
    return parseArgs({ args, options, allowPositionals: true });
  } catch (error) {
    process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n\n`);
    return { values: { json: false, help: false }, positionals: [] };
  }
}

async function runTask(command: string, words: readonly string[], values: Options): Promise<number> {
  const config = loadConfig(process.env);
  const stop = new AbortController();
  void stopSignal().then((signal) => stop.abort(new Error(`Stopped by ${signal}`)));
  const write = (line: string) => void process.stdout.write(`${line}\n`);
  // The events of the task already report what it does, so only warnings and errors are logged.
  const request = { config, log: openLog('warn'), signal: stop.signal, json: values.json, write };
  if (command === 'quota') return await (await import('./commands/quota.ts')).quotaCommand({ ...request, words });
  const { collectCommand, verifyCommand } = await import('./commands/collect.ts');
  return command === 'collect'
    ? await collectCommand({ ...request, dryRun: values['dry-run'] ?? false })
    : await verifyCommand({ ...request, repair: values.repair ?? false });
}

async function serve(roles: Roles, json: boolean): Promise<number> {
  const config = loadConfig(process.env);
  const log = openLog(config.logLevel);
  const stopped = stopSignal();
  const platform = await openPlatform({ config, log, roles });
  flushCompileCache();
  log.info({ ...platform.urls, roles: [...roles], worker: platform.worker?.running }, 'Platform opened');
  if (platform.worker?.running === false) log.warn({ reason: platform.worker.reason }, 'No worker on this node');
  if (platform.setupCode) {
    log.warn(
      { file: platform.setupCode.file, page: `${platform.urls.api}/setup` },
      'No administrator yet: create one at the page with the set-up code in the file',
    );
  }
  if (json) process.stdout.write(`${JSON.stringify(describe(platform))}\n`);
  const signal = await stopped;
  log.info({ signal }, 'Platform closes');
  // The platform logs the parts that fail to close.
  return await platform[Symbol.asyncDispose]().then(
    () => 0,
    () => 1,
  );
}

function describe({ urls, account, worker }: Platform) {
  return {
    api_url: urls.api,
    registry: urls.registry,
    proxy_url: urls.proxy,
    ...(urls.sessions !== undefined && { sessions_url: urls.sessions }),
    operations_url: urls.operations,
    ...(account && { account: account.name, token_file: account.tokenFile }),
    ...(worker && { docker: worker.running }),
    ...(worker?.running === false && { docker_problem: worker.reason }),
  };
}
