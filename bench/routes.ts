/**
 * The cost of routes in use: small answers through the proxy with a hundred routes and with 100,000, on the embedded store and, if
 * MONGODB_URL is set, on MongoDB. All routes have been requested before, and lead to a hundred backends. First each connection
 * requests its own route, as browsers do; then each request is for another route, in an order that defeats CPU caches.
 */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { temporaryFolder } from '../test/kit/machine/temporary-folder.ts';
import { cpuSeconds, pin } from './machine.ts';
import { inTurn, median, pairsRow, table } from './measurements.ts';
import type { Row } from './measurements.ts';
import { openApplication } from './proxy-peers/application.ts';
import { startBackend, startManyRoutes } from './proxy-peers/peers.ts';
import type { ManyRoutes } from './proxy-peers/peers.ts';
import { runWrk } from './wrk.ts';

const proxyCore = 0;
const loadCore = 1;

const manyRoutes = Number(process.env['BENCH_ROUTES'] ?? 100_000);
const fewRoutes = 100;
const rounds = Number(process.env['BENCH_ROUNDS'] ?? 7);
const seconds = Number(process.env['BENCH_SECONDS'] ?? 2);

const connections = 64;

/** A script of the load generator. */
interface Script {
  readonly path: string;
  readonly threads: number;
}

interface RunningProxy {
  readonly proxy: ManyRoutes;
  readonly own: Script;
  readonly changing: Script;
}

await using folder = await temporaryFolder();
await using servers = new AsyncDisposableStack();
const application = servers.use(await openApplication());
const backend = servers.use(await startBackend(join(folder.path, 'backend'), application.port));
for (const pid of [backend.pid, process.pid]) pin(pid, loadCore);
const rows: Row[] = [];
for (const mongodbUrl of new Set([undefined, process.env['MONGODB_URL'] || undefined])) {
  await using stores = new AsyncDisposableStack();
  const many = await start(manyRoutes, mongodbUrl, stores);
  const few = await start(fewRoutes, mongodbUrl, stores);
  const store = mongodbUrl === undefined ? 'embedded store' : 'MongoDB';
  for (const [script, what] of [
    ['own', `proxy with ${manyRoutes} routes in use (peer: with ${fewRoutes}), per CPU second, ${store}`],
    ['changing', '— each request for another route than the last on its connection'],
  ] as const) {
    const measure = async ({ proxy, ...scripts }: RunningProxy) => {
      const before = await cpuSeconds(proxy.pid);
      return (await ask(proxy, scripts[script])) / ((await cpuSeconds(proxy.pid)) - before);
    };
    const pairs = await inTurn(
      { warmUps: 1, rounds },
      async () => await measure(many),
      async () => await measure(few),
    );
    const show = (values: readonly number[]) => `${median(values).toFixed(0)}/s`;
    rows.push(pairsRow(what, pairs, { show, aim: 'same within noise' }));
  }
}
process.stdout.write(`${table(rows)}\n`);

/** Starts a proxy, and requests each of its routes. */
async function start(
  routes: number,
  mongodbUrl: string | undefined,
  stack: AsyncDisposableStack,
): Promise<RunningProxy> {
  const options = { folder: folder.path, backendPort: backend.port, routes, mongodbUrl };
  const proxy = stack.use(await startManyRoutes(options));
  pin(proxy.pid, proxyCore);
  const tokens = join(folder.path, `tokens-${routes}`);
  await writeFile(tokens, proxy.tokens.join('\n'));
  const script = async (threads: number, lines: readonly string[]): Promise<Script> => {
    const path = join(folder.path, `${threads}-${routes}.lua`);
    await writeFile(path, `${lines.join('\n')}\n`);
    return { path, threads };
  };
  const own = await script(connections, ownRoute(tokens, routes));
  const changing = await script(1, changingRoute(tokens));
  let requested = 0;
  while (requested < routes) requested += await ask(proxy, changing);
  return { proxy, own, changing };
}

/**
 * A script in which each thread has its own route. The tokens are in a file, because LuaJIT accepts only 65,536 constants in a
 * script.
 */
function ownRoute(tokensFile: string, routes: number): string[] {
  return [
    'local threads = 0',
    'function setup(thread)',
    `  thread:set('wanted', math.floor(threads * ${routes} / ${connections}))`,
    '  threads = threads + 1',
    'end',
    'function init()',
    '  local at = 0',
    `  for token in io.lines(${JSON.stringify(tokensFile)}) do`,
    '    if at == wanted then text = "GET /" .. token .. "/small HTTP/1.1\\r\\nHost: a\\r\\n\\r\\n" end',
    '    at = at + 1',
    '  end',
    'end',
    'function request() return text end',
  ];
}

/** A script for one thread that requests one route after the other. */
function changingRoute(tokensFile: string): string[] {
  return [
    'local tokens = {}',
    `for token in io.lines(${JSON.stringify(tokensFile)}) do tokens[#tokens + 1] = token end`,
    'local at = 0',
    'local step = 7919 % #tokens',
    'function request()',
    '  at = (at + step) % #tokens',
    '  return "GET /" .. tokens[at + 1] .. "/small HTTP/1.1\\r\\nHost: a\\r\\n\\r\\n"',
    'end',
  ];
}

/** Requests small answers, and returns their number. */
async function ask(proxy: ManyRoutes, { path, threads }: Script): Promise<number> {
  const url = `http://127.0.0.1:${proxy.port}/`;
  const { requests } = await runWrk({ url, seconds, connections, threads, args: ['-s', path], core: loadCore });
  return requests;
}
