/** The process: `node main/berth.ts serve [--roles …] [--json]`. */
import { flushCompileCache } from 'node:module';
import { parseArgs } from 'node:util';
import { openLog } from '../core/log/log.ts';
import { loadConfig } from './config.ts';
import { isMendable } from './mendable.ts';
import { openPlatform } from './platform.ts';
import type { Platform } from './platform.ts';
import { parseRoles } from './roles.ts';
import type { Roles } from './roles.ts';
import { stopSignal } from './signals.ts';
import { sizeThreadPool } from './thread-pool.ts';

const usage = `Usage: berth serve [--roles ROLES] [--json]

Runs the platform until it is asked to stop (SIGINT, SIGTERM). Configuration comes from the environment, see
docs/configuration.md.

  --roles ROLES   the rooms of this process, some of registry,api,worker,proxy (default: all)
  --json          once everything is open, write one line of JSON that says where
`;

sizeThreadPool(process.env);
// Everything is closed in order by then; what a library left running must not hold the process.
process.exit(await main(process.argv.slice(2)));

async function main(args: string[]): Promise<number> {
  const { values, positionals } = parseArgs({
    args,
    options: {
      roles: { type: 'string' },
      json: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    },
    allowPositionals: true,
  });
  if (values.help || positionals.length !== 1 || positionals[0] !== 'serve') {
    process.stderr.write(usage);
    return values.help ? 0 : 2;
  }
  try {
    await serve(parseRoles(values.roles), values.json);
    return 0;
  } catch (error) {
    if (!isMendable(error)) throw error;
    process.stderr.write(`${error.message}\n`);
    return 1;
  }
}

async function serve(roles: Roles, json: boolean): Promise<void> {
  const config = loadConfig(process.env);
  const log = openLog(config.logLevel);
  const stopped = stopSignal();
  await using platform = await openPlatform({ config, log, roles });
  flushCompileCache();
  log.info({ ...platform.urls, roles: [...roles], worker: platform.worker?.running }, 'Platform opened');
  if (json) process.stdout.write(`${JSON.stringify(describe(platform))}\n`);
  const signal = await stopped;
  log.info({ signal }, 'Platform closes');
}

function describe({ urls, account, worker }: Platform) {
  return {
    api_url: urls.api,
    registry: urls.registry,
    proxy_url: urls.proxy,
    operations_url: urls.operations,
    ...(account && { account: account.name, token_file: account.tokenFile }),
    ...(worker && { docker: worker.running }),
    ...(worker?.running === false && { docker_problem: worker.reason }),
  };
}
