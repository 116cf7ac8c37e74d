/** The same rooms on MongoDB, GridFS, BullMQ and Redis against SQLite, files and one process: per process, in one run. */
import { randomBytes } from 'node:crypto';
import { openTerminal } from '../setup/terminal.ts';
import { startPlatform } from '../test/kit/platform.ts';
import type { TestPlatform } from '../test/kit/platform.ts';
import { openSharedGround } from '../test/kit/shared-ground.ts';
import { cpuSeconds } from './cpu-time.ts';
import { inTurn, median, table } from './figures.ts';
import type { Pairs, Row } from './figures.ts';
import { requestsPerSecond } from './load.ts';
import { pin } from './pinned.ts';
import { queueLatency } from './queue-latency.ts';
import { pullBlob, pushBlob, pushEmptyImage, repositoryOf } from './raw-image.ts';

const rounds = 5;

/** Rounds that do not count: where no mongod is to be had, its stand-in is a program in Java, which compiles what it runs. */
const warmUps = 4;

const counted = { warmUps, rounds };

const blobBytes = 100 * 1024 * 1024;
const connections = 32;

await using servers = new AsyncDisposableStack();
const shared = await openSharedGround(openTerminal(process.stderr), servers);
if ('missing' in shared) throw new Error(`Nothing to measure: ${shared.missing}`);
const settings = { BERTH_LOG_LEVEL: 'warn' };
// Without an engine: backends stay scheduled, and what is measured is the API, the store and the queue alone.
await using ours = await startPlatform({ ground: shared, settings });
await using peer = await startPlatform({ settings });
for (const platform of [ours, peer]) {
  await pushEmptyImage(repositoryOf(platform, 'empty'));
  pin(platform.pid ?? 0, 0);
}
const rows = [
  ...(await connects('connect to a held key', 2_000, () => JSON.stringify({ key: 'held' }))),
  ...(await connects('connect that spawns', 1_000, () => '{}')),
  ...(await transfers()),
  await queueLatency(shared.redisUrl),
];
process.stdout.write(`${table(rows)}\n`);

/**
 * As a caller has it, and by what the API's process itself works: a stand-in for a database that runs beside it on the same
 * two cores takes from the first, and a real one on a machine of its own would not.
 */
async function connects(what: string, requests: number, body: () => string): Promise<Row[]> {
  const perWork: Record<string, number[]> = {};
  const rate = async (platform: TestPlatform) => {
    const url = `${platform.apiUrl}/v2/service/${platform.account}/empty/connect`;
    const headers = { 'content-type': 'application/json', authorization: `Bearer ${platform.token}` };
    const workedBefore = await cpuSeconds(platform.pid ?? 0);
    const answered = await requestsPerSecond({ url, headers, body: body(), connections, requests });
    const worked = (await cpuSeconds(platform.pid ?? 0)) - workedBefore;
    (perWork[platform.node] ??= []).push(requests / worked);
    return answered;
  };
  const pairs = await inTurn(
    counted,
    () => rate(ours),
    () => rate(peer),
  );
  const worked = (platform: TestPlatform) => (perWork[platform.node] ?? []).slice(warmUps);
  return [
    row(what, pairs, '/s', '≥ 0.5 ×'),
    row(`${what}, by the work of the API alone`, { ours: worked(ours), peer: worked(peer) }, '/s', '≥ 0.5 ×'),
  ];
}

async function transfers(): Promise<Row[]> {
  const [here, there] = [repositoryOf(ours, 'blob'), repositoryOf(peer, 'blob')];
  const digests: { ours: string[]; peer: string[] } = { ours: [], peer: [] };
  const push = async (repository: typeof here, into: string[]) =>
    await mibPerSecond(async () => void into.push(await pushBlob(repository, randomBytes(blobBytes))));
  const pull = async (repository: typeof here, [digest = '']: readonly string[]) =>
    await mibPerSecond(async () => void (await pullBlob(repository, digest)));
  const pushes = await inTurn(
    counted,
    () => push(here, digests.ours),
    () => push(there, digests.peer),
  );
  const pulls = await inTurn(
    counted,
    () => pull(here, digests.ours),
    () => pull(there, digests.peer),
  );
  return [row('push of 100 MiB', pushes, ' MiB/s', '≥ 0.5 ×'), row('pull of 100 MiB', pulls, ' MiB/s', '≥ 0.6 ×')];
}

async function mibPerSecond(transfer: () => Promise<void>): Promise<number> {
  const startedMs = performance.now();
  await transfer();
  return blobBytes / 1024 ** 2 / ((performance.now() - startedMs) / 1000);
}

function row(what: string, pairs: Pairs, unit: string, aim: string): Row {
  const [our, their] = [median(pairs.ours), median(pairs.peer)];
  return {
    what: `${what}: MongoDB and Redis / embedded`,
    ours: `${our.toFixed(0)}${unit}`,
    peer: `${their.toFixed(0)}${unit}`,
    ratio: `${(our / their).toFixed(2)} ×`,
    aim,
  };
}
