/** The components as separate processes on MongoDB, GridFS, BullMQ and Redis, compared with one process on SQLite and files. */
import { openTerminal } from '../setup/terminal.ts';
import { AptPackages } from '../test/kit/packages/apt-packages.ts';
import { startPlatform } from '../test/kit/platform/platform.ts';
import type { TestPlatform } from '../test/kit/platform/platform.ts';
import { openSharedServers } from '../test/kit/servers/shared-servers.ts';
import { cpuSeconds, pin, settleDisk } from './machine.ts';
import { inTurn, median, pairsRow, sizeRow, table } from './measurements.ts';
import type { Pairs, Row } from './measurements.ts';
import { requestsPerSecond } from './load.ts';
import { peakBytesOfPushes } from './memory.ts';
import { queueLatency } from './queue-latency.ts';
import { authorizationOf, pushEmptyImage } from './raw-image.ts';
import { Puller, Pusher, newBlobs } from './registry-load.ts';
import type { Blob, Repository } from './registry-load.ts';

/** With warm-up rounds, because the stand-in for a mongod is a Java program, which compiles its code while it runs. */
const counted = { warmUps: 4, rounds: 5 };

const blobBytes = 100 * 1024 * 1024;
const connections = 32;

await using servers = new AsyncDisposableStack();
const shared = await openSharedServers(new AptPackages(openTerminal(process.stderr)), servers, { isMeasured: true });
if ('missing' in shared) throw new Error(`Nothing to measure: ${shared.missing}`);
const settings = { BERTH_LOG_LEVEL: 'warn' };
// Without an engine, backends stay scheduled, so this measures only the API, the store and the queue.
await using ours = await startPlatform({ drivers: shared, settings });
await using uncached = await startPlatform({ drivers: shared, settings: { ...settings, BERTH_BLOB_CACHE_MIB: '0' } });
await using peer = await startPlatform({ settings });
for (const platform of [ours, uncached, peer]) await pushEmptyImage(platform, 'empty');
// Memory first, because pulls leave memory allocated that is not due to pushes.
const memory = await memoryRow();
const transferRows = await transfers();
for (const platform of [ours, peer]) pin(platform.pid ?? 0, 0);
const rows = [
  ...(await connects('connect to a held key', 2_000, () => JSON.stringify({ key: 'held' }))),
  ...(await connects('connect that spawns', 1_000, () => '{}')),
  ...transferRows,
  memory,
  await queueLatency(shared.redisUrl),
];
process.stdout.write(`${table(rows)}\n`);

async function connects(what: string, requests: number, body: () => string): Promise<Row[]> {
  const prepare = async (platform: TestPlatform) => {
    const url = `${platform.apiUrl}/v2/service/${platform.account}/empty/connect`;
    const headers = { 'content-type': 'application/json', authorization: `Bearer ${platform.token}` };
    const load = { url, headers, body: body(), connections, requests };
    return async () => void (await requestsPerSecond(load));
  };
  const measured = { what, by: 'API', amount: requests, unit: '/s', aim: '≥ 0.5 ×' };
  return await compare(measured, { prepare, pid: (platform) => platform.pid });
}

async function transfers(): Promise<Row[]> {
  const [pulled] = newBlobs(1, blobBytes) as [Blob];
  for (const platform of [ours, uncached, peer]) {
    using pusher = new Pusher(blobsOf(platform));
    await pusher.blob(pulled);
  }
  const push = async (platform: TestPlatform) => {
    const [blob] = newBlobs(1, blobBytes) as [Blob];
    return async () => {
      using pusher = new Pusher(blobsOf(platform));
      await pusher.blob(blob);
    };
  };
  const pull = async (platform: TestPlatform) => async () => {
    using puller = await Puller.open(blobsOf(platform));
    await puller.ask('GET', `blobs/${pulled.digest}`, blobBytes);
  };
  const pid = (platform: TestPlatform) => platform.registryPid;
  const inMib = { by: 'registry', amount: blobBytes / 1024 ** 2, unit: ' MiB/s' };
  return [
    ...(await compare({ ...inMib, what: 'push of 100 MiB', aim: '≥ 0.5 ×' }, { prepare: push, pid })),
    ...(await compare({ ...inMib, what: 'pull of 100 MiB', aim: '≥ 0.6 ×' }, { prepare: pull, pid })),
    ...(await compare({ ...inMib, what: 'first pull of 100 MiB', aim: '' }, { prepare: pull, pid, ours: uncached })),
  ];
}

/** A registry process on GridFS, compared with the whole platform in one process on files. */
async function memoryRow(): Promise<Row> {
  const peaks = {
    ours: await peakBytesOfPushes(blobsOf(ours), ours.registryPid ?? 0),
    peer: await peakBytesOfPushes(blobsOf(peer), peer.registryPid ?? 0),
  };
  const sides = 'a registry on GridFS / all components in one process, on files';
  return sizeRow(`peak memory of 20 concurrent pushes of 100 MiB after a start: ${sides}`, peaks, '< 200 MB');
}

function blobsOf(platform: TestPlatform): Repository {
  const [host = '', port = ''] = platform.registry.split(':');
  return { host, port: Number(port), name: `${platform.account}/blob`, authorization: authorizationOf(platform) };
}

interface Measured {
  readonly what: string;
  /** The name of the process whose CPU time is measured. */
  readonly by: string;
  readonly amount: number;
  readonly unit: string;
  readonly aim: string;
}

interface Work {
  /** Prepares a measurement, and returns the work that is timed. */
  readonly prepare: (platform: TestPlatform) => Promise<() => Promise<void>>;
  readonly pid: (platform: TestPlatform) => number | undefined;
  /** Default: the platform with default settings. */
  readonly ours?: TestPlatform;
}

/**
 * Measures both platforms per second, and per CPU second of the process. The rate per second depends on the stand-in database, which
 * runs on the same two cores; a real database would have its own machine.
 */
async function compare({ what, by, amount, unit, aim }: Measured, work: Work): Promise<Row[]> {
  const { prepare, pid } = work;
  const perCpuSecond = { ours: [] as number[], peer: [] as number[] };
  const rate = async (side: 'ours' | 'peer', platform: TestPlatform) => {
    const run = await prepare(platform);
    await settleDisk();
    const before = await cpuSeconds(pid(platform) ?? 0);
    const startedMs = performance.now();
    await run();
    const seconds = (performance.now() - startedMs) / 1000;
    perCpuSecond[side].push(amount / ((await cpuSeconds(pid(platform) ?? 0)) - before));
    return amount / seconds;
  };
  const pairs = await inTurn(
    counted,
    () => rate('ours', work.ours ?? ours),
    () => rate('peer', peer),
  );
  const { ours: our, peer: their } = perCpuSecond;
  const afterWarmUps = { ours: our.slice(counted.warmUps), peer: their.slice(counted.warmUps) };
  return [row(what, pairs, unit, aim), row(`${what}, per CPU second of the ${by}`, afterWarmUps, unit, aim)];
}

function row(what: string, pairs: Pairs, unit: string, aim: string): Row {
  const show = (rates: readonly number[]) => `${median(rates).toFixed(0)}${unit}`;
  return pairsRow(`${what}: MongoDB and Redis / embedded`, pairs, { show, aim });
}
