/**
 * How many routes in use cost: small answers through the proxy with one route, and with 100,000 that are asked for in turn, on the
 * embedded store and, where MONGODB_URL is set, on MongoDB. The routes lead to a hundred backends.
 */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { runCommand } from '../setup/command.ts';
import { temporaryFolder } from '../test/kit/machine/temporary-folder.ts';
import { proxyProgram } from '../test/kit/packages/proxy-programs.ts';
import { cpuSeconds, pin } from './machine.ts';
import { inTurn, median, pairsRow, table } from './measurements.ts';
import type { Row } from './measurements.ts';
import { openApplication } from './proxy-peers/application.ts';
import { startBackend, startManyRoutes } from './proxy-peers/peers.ts';
import type { ManyRoutes } from './proxy-peers/peers.ts';

const proxyCore = 0;
const loadCore = 1;

const routeCount = Number(process.env['BENCH_ROUTES'] ?? 100_000);
const rounds = Number(process.env['BENCH_ROUNDS'] ?? 7);
const seconds = Number(process.env['BENCH_SECONDS'] ?? 4);

await using folder = await temporaryFolder();
await using servers = new AsyncDisposableStack();
const application = servers.use(await openApplication());
const backend = servers.use(await startBackend(join(folder.path, 'backend'), application.port));
for (const pid of [backend.pid, process.pid]) pin(pid, loadCore);
const rows: Row[] = [];
for (const mongodbUrl of [undefined, process.env['MONGODB_URL']]) {
  if (mongodbUrl === undefined && rows.length > 0) continue;
  await using stores = new AsyncDisposableStack();
  const start = async (routes: number) => {
    const proxy = stores.use(
      await startManyRoutes({ folder: folder.path, backendPort: backend.port, routes, mongodbUrl }),
    );
    pin(proxy.pid, proxyCore);
    const tokens = join(folder.path, `tokens-${routes}`);
    const script = join(folder.path, `routes-${routes}.lua`);
    await writeFile(tokens, proxy.tokens.join('\n'));
    await writeFile(script, scriptReading(tokens));
    return { proxy, script };
  };
  const [many, one] = [await start(routeCount), await start(1)];
  const pairs = await inTurn(
    { warmUps: 2, rounds },
    async () => await requestsPerCpuSecond(many.proxy, many.script),
    async () => await requestsPerCpuSecond(one.proxy, one.script),
  );
  const show = (values: readonly number[]) => `${median(values).toFixed(0)}/s`;
  const store = mongodbUrl === undefined ? 'embedded store' : 'MongoDB';
  const what = `small answers per CPU second, ${store}: ${routeCount} routes / 1 route`;
  rows.push(pairsRow(what, pairs, { show, aim: 'same within noise' }));
}
process.stdout.write(`${table(rows)}\n`);

/**
 * A script for wrk that asks for one route after the other, in an order that no cache of the processor likes. The tokens are in a file:
 * LuaJIT accepts 65,536 constants in a script.
 */
function scriptReading(tokensFile: string): string {
  return [
    'local tokens = {}',
    `for token in io.lines(${JSON.stringify(tokensFile)}) do tokens[#tokens + 1] = token end`,
    'local at = 0',
    'local step = 7919 % #tokens',
    'if step == 0 then step = 1 end',
    'function request()',
    '  at = (at + step) % #tokens',
    '  return "GET /" .. tokens[at + 1] .. "/small HTTP/1.1\\r\\nHost: a\\r\\n\\r\\n"',
    'end',
    '',
  ].join('\n');
}

async function requestsPerCpuSecond(proxy: ManyRoutes, script: string): Promise<number> {
  const wrk = await proxyProgram('wrk');
  if ('missing' in wrk) throw new Error(wrk.missing);
  const before = await cpuSeconds(proxy.pid);
  const args = ['-t', '1', '-c', '64', '-d', `${seconds}s`, '--timeout', '30s', '-s', script];
  const url = `http://127.0.0.1:${proxy.port}/`;
  const said = await runCommand('taskset', ['-c', `${loadCore}`, wrk.path, ...args, url], { env: wrk.env });
  const problem = /(?:Socket errors|Non-2xx).*/.exec(said)?.[0];
  if (problem !== undefined) throw new Error(problem);
  const [, requests = ''] = /(\d+) requests in/.exec(said) ?? [];
  return Number(requests) / ((await cpuSeconds(proxy.pid)) - before);
}
