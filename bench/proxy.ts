/**
 * The proxy, compared with nginx, haproxy, configurable-http-proxy and no proxy: one core for each proxy, 64 connections, the same
 * work, in turn. All proxies look up the token of a request. The load and the backend share the other core.
 */
import { writeFile, mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { temporaryFolder } from '../test/kit/machine/temporary-folder.ts';
import { cpuSeconds, pin } from './machine.ts';
import { median, pairsRow, table } from './measurements.ts';
import type { Row } from './measurements.ts';
import { openApplication, roundTrips } from './proxy-peers/application.ts';
import { newConnections } from './proxy-peers/new-connections.ts';
import {
  startBackend,
  startBerth,
  startConfigurableHttpProxy,
  startHaproxy,
  startNginx,
  startUploadReader,
} from './proxy-peers/peers.ts';
import type { Peer } from './proxy-peers/peers.ts';
import { runWrk } from './wrk.ts';

const proxyCore = 0;
const loadCore = 1;

/** Rounds of each measurement. The median of the rounds' ratios counts. */
const rounds = Number(process.env['BENCH_ROUNDS'] ?? 5);

/**
 * A load begins with 64 connections at once. wrk corrects the latencies as if more requests had waited with the first ones: in a
 * load of two seconds, 20 ms at the start are one percent, and so determine the p99. New connections have their own row.
 */
const seconds = Number(process.env['BENCH_SECONDS'] ?? 5);

/** The headers that a browser sends with a request for a part of a page. */
const browserHeaders = [
  'User-Agent: Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 Safari/537.36',
  'Accept: text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,image/apng,*/*;q=0.8',
  'Accept-Encoding: gzip, deflate, br, zstd',
  'Accept-Language: en-GB,en;q=0.9,de;q=0.8',
  'Cache-Control: no-cache',
  'Cookie: session=4bd3e17ab2a94cf9a1e9f7; theme=dark; _ga=GA1.1.1234567890.1700000000; csrftoken=aGVsbG8gd29ybGQ',
  'Pragma: no-cache',
  'Referer: https://sessions.example.com/index.html',
  'Sec-Ch-Ua: "Chromium";v="142", "Google Chrome";v="142", "Not?A_Brand";v="24"',
  'Sec-Ch-Ua-Mobile: ?0',
  'Sec-Ch-Ua-Platform: "Linux"',
  'Sec-Fetch-Dest: document',
  'Sec-Fetch-Mode: navigate',
  'Sec-Fetch-Site: same-origin',
  'Sec-Fetch-User: ?1',
  'Upgrade-Insecure-Requests: 1',
];

interface Kind {
  readonly what: string;
  readonly path: string;
  readonly aim: string;
  readonly headers?: readonly string[];
  readonly script?: string;
  /** Default: 64. */
  readonly connections?: number;
  /** Whether the backend is the upload reader instead of nginx. */
  readonly uploads?: boolean;
  /** Whether MiB are counted instead of requests, because too few requests end. */
  readonly countsMiB?: boolean;
  /** Measures round trips over upgraded connections, or connections for one request each, instead of requests of wrk. */
  readonly instead?: 'round trips' | 'new connections';
}

const mebibyte = 1024 * 1024;

await using folder = await temporaryFolder();
const upload = join(folder.path, 'upload.lua');
await writeFile(upload, `wrk.method = "POST"\nwrk.body = string.rep("x", ${mebibyte})\n`);
const countUp = join(folder.path, 'count-up.lua');
await writeFile(
  countUp,
  'local n = 0\nfunction request() n = n + 1; return wrk.format("GET", wrk.path .. "?" .. n) end\n',
);

const kinds: Readonly<Record<string, Kind>> = {
  small: { what: '12-byte answers', path: 'small', aim: '>= 1.0' },
  // Berth compares a request with the previous request of its connection: here, all requests differ.
  targets: { what: '12-byte answers, another URL each time', path: 'small', aim: '', script: countUp },
  connections: { what: '64 new connections at a time', path: 'small', aim: '', instead: 'new connections' },
  browser: { what: 'headers of a browser', path: 'small', aim: '>= 1.0', headers: browserHeaders },
  medium: { what: '10 KiB', path: '10k', aim: '>= 0.95' },
  down: { what: '1 MiB down', path: '1m', aim: '>= 0.85' },
  up: { what: '1 MiB up', path: 'up', aim: '>= 1.2', script: upload, uploads: true },
  websocket: {
    what: 'WebSocket round trips',
    path: 'application/ws',
    aim: '>= 0.75',
    connections: 100,
    instead: 'round trips',
  },
  huge: { what: '1 GiB down, in MiB', path: '1g', aim: '>= 0.8', connections: 4, countsMiB: true },
};

const sizes: Readonly<Record<string, number>> = { '10k': 10 * 1024, '1m': mebibyte, '1g': 1024 * mebibyte };

/** The kinds of rows on the command line, such as `small`. Default: all. */
const wanted = process.argv.slice(2);

await using peers = new AsyncDisposableStack();
const backendFolder = join(folder.path, 'backend');
await mkdir(backendFolder);
for (const [name, size] of Object.entries(sizes)) await writeFile(join(backendFolder, name), Buffer.alloc(size));
const application = peers.use(await openApplication());
const backend = peers.use(await startBackend(backendFolder, application.port));
const uploadReader = peers.use(await startUploadReader());
for (const pid of [backend.pid, uploadReader.pid, process.pid]) pin(pid, loadCore);

interface Contestant {
  readonly name: string;
  readonly peer: Peer;
  readonly prefix: string;
}

const contestants = await startContestants(backend);
const contestantsOfUploads = await startContestants(uploadReader);

/** Starts all proxies in front of a backend. Idle proxies use no CPU time. */
async function startContestants(target: Peer): Promise<readonly Contestant[]> {
  const work = { token: 'a'.repeat(43), backendPort: target.port };
  const of = (program: string) => join(folder.path, `${program}-${target.port}`);
  const nginx = peers.use(await startNginx(of('nginx'), work));
  const haproxy = peers.use(await startHaproxy(of('haproxy'), work));
  const berth = peers.use(await startBerth(work));
  const jupyter = peers.use(await startConfigurableHttpProxy(work));
  for (const { pid } of [nginx, haproxy, berth, jupyter]) pin(pid, proxyCore);
  return [
    { name: 'nginx', peer: nginx, prefix: `/${work.token}/` },
    { name: 'Berth', peer: berth, prefix: `/${berth.token}/` },
    { name: 'haproxy', peer: haproxy, prefix: `/${work.token}/` },
    { name: 'configurable-http-proxy', peer: jupyter, prefix: `/${work.token}/` },
    { name: 'direct', peer: target, prefix: '/' },
  ];
}

interface Result {
  /** Requests per second. */
  readonly rate: number;
  /** Requests per second of the proxy's CPU time, which other programs on the machine affect less. */
  readonly cpuRate: number;
  readonly p99Ms: number;
}

const rows: Row[] = [];
for (const [name, kind] of Object.entries(kinds)) {
  if (wanted.length > 0 && !wanted.includes(name)) continue;
  const results = await measured(kind);
  const ofNginx = results.get('nginx') ?? [];
  for (const [contestant, ours] of results) {
    if (contestant === 'nginx') continue;
    const aim = contestant === 'Berth' ? kind.aim : '';
    add(`${kind.what}: ${contestant} / nginx`, pick(ours, ofNginx, 'rate'), '/s', aim);
    if (contestant === 'direct') continue;
    add(`- per CPU second`, pick(ours, ofNginx, 'cpuRate'), '/s', '');
    const hasLatency = kind.instead === undefined && kind.countsMiB !== true;
    if (contestant === 'configurable-http-proxy' && name === 'small') {
      add(`${kind.what}: Berth / ${contestant}`, pick(results.get('Berth') ?? [], ours, 'rate'), '/s', '>= 5');
    }
    if (contestant === 'Berth' && hasLatency) add(`- p99`, pick(ours, ofNginx, 'p99Ms'), ' ms', '<= 1.5');
  }
}
process.stdout.write(`${table(rows)}\n`);

function pick(ours: readonly Result[], peer: readonly Result[], what: keyof Result) {
  return { ours: ours.map((each) => each[what]), peer: peer.map((each) => each[what]) };
}

/** Adds a row, and prints it at once, because the whole run takes minutes. */
function add(what: string, pairs: ReturnType<typeof pick>, unit: string, aim: string): void {
  const show = (values: readonly number[]) => `${median(values).toFixed(unit === '/s' ? 0 : 1)}${unit}`;
  const row = pairsRow(what, pairs, { show, aim });
  rows.push(row);
  process.stderr.write(`${row.what}: ${row.ratio} (${row.ours}, ${row.peer})\n`);
}

/** Measures all contestants in turn, after a round to warm up. */
async function measured(kind: Kind): Promise<Map<string, Result[]>> {
  const measuredPeers = kind.uploads === true ? contestantsOfUploads : contestants;
  const results = new Map<string, Result[]>(measuredPeers.map(({ name }) => [name, []]));
  for (let round = 0; round <= rounds; round += 1) {
    const order = round % 2 === 0 ? measuredPeers : measuredPeers.toReversed();
    for (const contestant of order) {
      const result = await load(contestant, kind);
      if (round > 0) results.get(contestant.name)?.push(result);
    }
  }
  return results;
}

async function load({ peer, prefix, name }: Contestant, kind: Kind): Promise<Result> {
  const url = `http://127.0.0.1:${peer.port}${prefix}${kind.path}`;
  const before = await cpuSeconds(peer.pid);
  const { requests, tookSeconds, p99Ms } = await measure(name, url, kind);
  const used = (await cpuSeconds(peer.pid)) - before;
  return { rate: requests / tookSeconds, cpuRate: requests / Math.max(used, 0.01), p99Ms };
}

async function measure(
  name: string,
  url: string,
  kind: Kind,
): Promise<{ requests: number; tookSeconds: number; p99Ms: number }> {
  const { connections = 64, instead } = kind;
  const load = { connections, seconds };
  if (instead === undefined) return await requestsOf(name, url, { ...kind, connections });
  if (instead === 'new connections') return { ...(await newConnections(new URL(url), load)), p99Ms: Number.NaN };
  return { requests: await roundTrips(new URL(url), load), tookSeconds: seconds, p99Ms: Number.NaN };
}

/** Sends requests with wrk. */
async function requestsOf(name: string, url: string, { headers = [], script, connections = 64, countsMiB }: Kind) {
  const args = [
    '--latency',
    ...headers.flatMap((header) => ['-H', header]),
    ...(script === undefined ? [] : ['-s', script]),
  ];
  const { requests, output } = await runWrk({ url, seconds, connections, args, core: loadCore }).catch(
    (cause: unknown) => {
      throw new Error(`Cannot measure ${name}`, { cause });
    },
  );
  const [, tookSeconds = '', size = '', sizeUnit = ''] =
    /requests in ([\d.]+)s, ([\d.]+)([KMGT]?)B read/.exec(output) ?? [];
  const count =
    countsMiB === true ? Number(size) * ({ K: 1 / 1024, M: 1, G: 1024, T: 1024 * 1024 }[sizeUnit] ?? 0) : requests;
  const [, p99 = '', unit = 'ms'] = /99%\s+([\d.]+)(us|ms|s)/.exec(output) ?? [];
  const unitMs = { us: 0.001, ms: 1, s: 1000 }[unit] ?? 1;
  return { requests: count, tookSeconds: Number(tookSeconds), p99Ms: Number(p99) * unitMs };
}
