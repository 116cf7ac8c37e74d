/** The registry against the reference implementation as Debian packages it: same machine, same disk, same run. */
import { dirname } from 'node:path';
import { startPlatform } from '../test/kit/platform.ts';
import { startDebianRegistry } from './debian-registry.ts';
import { openDocker } from './docker-transfer.ts';
import { inTurn, median, pairsRow, sidesIn, sizeRow, table } from './figures.ts';
import type { Pairs, Row } from './figures.ts';
import { peakBytesOfPushes } from './push-memory.ts';
import { Puller, Pusher, atATime, newBlobs } from './registry-load.ts';
import type { Blob, Repository } from './registry-load.ts';
import { settleDisk } from './settled-disk.ts';

const mib = 1024 * 1024;

/** Of each measurement, in turn; the middle one counts. What they push stays on the disk until the end: 30 GB in all. */
const rounds = 5;

/** With docker, whose own work takes most of the time and differs by some percent each time. */
const dockerRounds = 7;

const concurrencies = [1, 4, 8];

/** How many blobs of a size make a measurement: enough that it takes a good part of a second. */
const sizes = [
  { sizeBytes: 1 * mib, pushes: 64, pulls: 256 },
  { sizeBytes: 10 * mib, pushes: 16, pulls: 64 },
  { sizeBytes: 100 * mib, pushes: 4, pulls: 16 },
];

const smallRequests = 3_000;

await using platform = await startPlatform({ settings: { BERTH_LOG_LEVEL: 'warn' } });
await using debian = await startDebianRegistry(dirname(platform.dataFolder));
const [host = '', port = ''] = platform.registry.split(':');
const name = `${platform.account}/bench`;
/** The other one is asked without any log-in; ours takes none. */
const us = async (): Promise<Repository> => ({
  host,
  port: Number(port),
  name,
  authorization: `Bearer ${await bearerToken()}`,
});
const them: Repository = { host: '127.0.0.1', port: debian.port, name: 'acme/bench', authorization: '' };

/** Only rows of these kinds, where the command line names any: `push`, `pull`, `small`, `docker`, `memory`. */
const wanted = process.argv.slice(2);
const isWanted = (kind: string) => wanted.length === 0 || wanted.includes(kind);

const rows: Row[] = [];
for (const { sizeBytes, pushes, pulls } of sizes) {
  for (const concurrency of concurrencies) {
    if (isWanted('push')) add(await pushRow(sizeBytes, concurrency, pushes));
    if (isWanted('pull')) add(await pullRow(sizeBytes, concurrency, pulls));
  }
}
if (isWanted('small')) for (const row of await smallRows()) add(row);
if (isWanted('docker')) for (const row of await dockerRows()) add(row);
if (isWanted('memory')) add(await memoryRow());
process.stdout.write(`${table(rows)}\n`);

/** It takes minutes, so each row is told as it comes. */
function add(row: Row): void {
  rows.push(row);
  process.stderr.write(`${row.what}: ${row.ratio}\n`);
}

async function pushRow(sizeBytes: number, concurrency: number, count: number): Promise<Row> {
  const rates = await both(async (repository) => {
    const blobs = newBlobs(Math.max(count, concurrency), sizeBytes);
    using pusher = new Pusher(repository);
    await settleDisk();
    return await perSecond(blobs.length * sizeBytes, async () => {
      await atATime(concurrency, blobs, async (blob) => await pusher.blob(blob));
    });
  });
  return row(`push of ${sizeBytes / mib} MiB, ${concurrency} at a time`, rates, mib, ' MiB/s');
}

async function pullRow(sizeBytes: number, concurrency: number, count: number): Promise<Row> {
  const [blob] = newBlobs(1, sizeBytes) as [Blob];
  for (const repository of [await us(), them]) {
    using pusher = new Pusher(repository);
    await pusher.blob(blob);
  }
  const rates = await both(async (repository) => {
    const seconds = await readAll(repository, { concurrency, count, path: `blobs/${blob.digest}`, sizeBytes });
    return (count * sizeBytes) / seconds;
  });
  return row(`pull of ${sizeBytes / mib} MiB, ${concurrency} at a time`, rates, mib, ' MiB/s');
}

async function smallRows(): Promise<Row[]> {
  const layers = newBlobs(3, 1_000);
  let manifestBytes = 0;
  for (const repository of [await us(), them]) {
    using pusher = new Pusher(repository);
    for (const layer of layers) await pusher.blob(layer);
    manifestBytes = await pusher.image(layers, 'latest');
  }
  const small: Row[] = [];
  const blobPath = `blobs/${layers[0]?.digest}`;
  for (const concurrency of concurrencies) {
    const many = { concurrency, count: smallRequests };
    const manifest = await both(
      async (repository) =>
        smallRequests / (await readAll(repository, { ...many, path: 'manifests/latest', sizeBytes: manifestBytes })),
    );
    small.push(row(`GET of a manifest by tag, ${concurrency} at a time`, manifest, 1, '/s'));
    const head = await both(
      async (repository) =>
        smallRequests / (await readAll(repository, { ...many, path: blobPath, sizeBytes: 1_000, method: 'HEAD' })),
    );
    small.push(row(`HEAD of a blob, ${concurrency} at a time`, head, 1, '/s'));
  }
  return small;
}

async function dockerRows(): Promise<Row[]> {
  await using docker = await openDocker();
  const login = { user: platform.account, password: platform.token };
  const targets = {
    ours: { repository: `${platform.registry}/${name}`, login },
    peer: { repository: `${them.host}:${them.port}/${them.name}` },
  };
  const push: Pairs = { ours: [], peer: [] };
  const pull: Pairs = { ours: [], peer: [] };
  for (let round = 0; round < dockerRounds; round += 1) {
    for (const side of sidesIn(round)) {
      const { pushSeconds, pullSeconds } = await docker.transfer(targets[side]);
      push[side].push(1 / pushSeconds);
      pull[side].push(1 / pullSeconds);
    }
  }
  return [row('docker push of 200 MB', push, 1 / 200, ' MB/s'), row('docker pull of 200 MB', pull, 1 / 200, ' MB/s')];
}

/** The platform as a whole, against the reference registry alone. */
async function memoryRow(): Promise<Row> {
  const peaks = {
    ours: await peakBytesOfPushes(await us(), platform.pid ?? 0),
    peer: await peakBytesOfPushes(them, debian.pid),
  };
  return sizeRow('peak memory of 20 pushes of 100 MiB at a time: Berth / docker-registry', peaks, '< 200 MB');
}

interface Reading {
  readonly concurrency: number;
  readonly count: number;
  readonly path: string;
  readonly sizeBytes: number;
  readonly method?: 'GET' | 'HEAD';
}

/** Reads one thing so many times, and returns the seconds that took. */
async function readAll(repository: Repository, reading: Reading): Promise<number> {
  const { concurrency, count, path, sizeBytes, method = 'GET' } = reading;
  using opened = new DisposableStack();
  const pullers: Puller[] = [];
  for (let i = 0; i < concurrency; i += 1) pullers.push(opened.use(await Puller.open(repository)));
  const startedMs = performance.now();
  await atATime(concurrency, Array.from({ length: count }), async (_item, worker) => {
    await pullers[worker]?.ask(method, path, sizeBytes);
  });
  return (performance.now() - startedMs) / 1000;
}

async function perSecond(amount: number, work: () => Promise<void>): Promise<number> {
  const startedMs = performance.now();
  await work();
  return amount / ((performance.now() - startedMs) / 1000);
}

/** One round to warm both up, then the ones that count. */
async function both(rate: (repository: Repository) => Promise<number>): Promise<Pairs> {
  return await inTurn(
    { warmUps: 1, rounds },
    async () => await rate(await us()),
    async () => await rate(them),
  );
}

function row(what: string, pairs: Pairs, unit: number, unitName: string): Row {
  const show = (rates: readonly number[]) => `${(median(rates) / unit).toFixed(0)}${unitName}`;
  return pairsRow(`${what}: Berth / docker-registry`, pairs, { show, aim: '> 1 ×' });
}

/** What a client gets before its first request. It is good for some minutes, so each measurement has its own. */
async function bearerToken(): Promise<string> {
  const login = Buffer.from(`${platform.account}:${platform.token}`).toString('base64');
  const url = `http://${platform.registry}/token?service=berth-registry&scope=repository:${name}:pull,push`;
  const answer = await fetch(url, { headers: { authorization: `Basic ${login}` } });
  return ((await answer.json()) as { token: string }).token;
}
