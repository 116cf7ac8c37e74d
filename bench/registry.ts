/** The registry, compared with the reference implementation as Debian packages it: same machine, same disk, same run. */
import { dirname } from 'node:path';
import { openTerminal } from '../setup/terminal.ts';
import { AptPackages } from '../test/kit/packages/apt-packages.ts';
import { startPlatform } from '../test/kit/platform/platform.ts';
import { openSharedServers } from '../test/kit/servers/shared-servers.ts';
import { startDebianRegistry } from './debian-registry.ts';
import { openDocker } from './docker-transfer.ts';
import type { Transfer } from './docker-transfer.ts';
import { inTurn, median, pairsRow, sidesIn, sizeRow, table } from './measurements.ts';
import type { Pairs, Row } from './measurements.ts';
import { peakBytesOfPushes } from './memory.ts';
import { Pusher, atATime, loggedIn, newBlobs, readAll } from './registry-load.ts';
import type { Blob, Repository } from './registry-load.ts';
import { settleDisk } from './machine.ts';

const mib = 1024 * 1024;

/** Rounds of each measurement; the median counts. Pushed blobs stay on the disk until the end: 30 GB in total. */
const rounds = 5;

/** Rounds of pulls, which write nothing to the disk. */
const pullRounds = 15;

/** Rounds with docker, whose own work takes most of the time and varies by ten percent. */
const dockerRounds = 9;
const pullsOfPush = 7;

const concurrencies = [1, 4, 8];

/** The number of blobs of each size: enough for a good part of a second. */
const sizes = [
  { sizeBytes: 1 * mib, pushes: 64, pulls: 256 },
  { sizeBytes: 10 * mib, pushes: 16, pulls: 64 },
  { sizeBytes: 100 * mib, pushes: 4, pulls: 16 },
];

const smallRequests = 3_000;

const settings = { BERTH_LOG_LEVEL: 'warn' };
await using platform = await startPlatform({ settings });
await using debian = await startDebianRegistry(dirname(platform.dataFolder));
const ourRepository = async (): Promise<Repository> => await loggedIn(platform, platform.registry);
/** The reference implementation needs no login. */
const peerRepository: Repository = { host: '127.0.0.1', port: debian.port, name: 'acme/bench', authorization: '' };

/** The kinds of rows on the command line: `push`, `pull`, `small`, `twice`, `docker`, `memory`. Default: all. */
const wanted = process.argv.slice(2);
const isWanted = (kind: string) => wanted.length === 0 || wanted.includes(kind);

const rows: Row[] = [];
for (const { sizeBytes, pushes, pulls } of sizes) {
  for (const concurrency of concurrencies) {
    if (isWanted('push')) add(await pushRow(sizeBytes, concurrency, pushes));
    if (isWanted('pull')) add(await pullRow({ sizeBytes, concurrency, count: pulls }));
  }
}
if (isWanted('small')) for (const row of await smallRows()) add(row);
if (isWanted('twice')) for (const row of await twoRegistriesRows()) add(row);
if (isWanted('docker')) for (const row of await dockerRows()) add(row);
if (isWanted('memory')) add(await memoryRow());
process.stdout.write(`${table(rows)}\n`);

/** Adds a row, and prints it at once, because the whole run takes minutes. */
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

interface Pulls {
  readonly sizeBytes: number;
  readonly concurrency: number;
  readonly count: number;
  /** The registries to pull from in turn, and their name in the row. Default: the platform's only registry. */
  readonly ours?: { readonly what: string; readonly repositories: () => Promise<readonly Repository[]> };
}

async function pullRow({ sizeBytes, concurrency, count, ours }: Pulls): Promise<Row> {
  const { what = '', repositories = async () => [await ourRepository()] } = ours ?? {};
  const [blob] = newBlobs(1, sizeBytes) as [Blob];
  for (const repository of [...(await repositories()).slice(0, 1), peerRepository]) {
    using pusher = new Pusher(repository);
    await pusher.blob(blob);
  }
  const rate = async (from: readonly Repository[]) => {
    const seconds = await readAll(from, { concurrency, count, path: `blobs/${blob.digest}`, sizeBytes });
    return (count * sizeBytes) / seconds;
  };
  // During the warm-up, a registry on MongoDB copies the blob to its disk.
  const rates = await inTurn(
    { warmUps: 3, rounds: pullRounds },
    async () => await rate(await repositories()),
    async () => await rate([peerRepository]),
  );
  return row(`pull of ${sizeBytes / mib} MiB, ${concurrency} at a time${what}`, rates, mib, ' MiB/s');
}

async function smallRows(): Promise<Row[]> {
  const layers = newBlobs(3, 1_000);
  let manifestBytes = 0;
  for (const repository of [await ourRepository(), peerRepository]) {
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
        smallRequests / (await readAll([repository], { ...many, path: 'manifests/latest', sizeBytes: manifestBytes })),
    );
    small.push(row(`GET of a manifest by tag, ${concurrency} at a time`, manifest, 1, '/s'));
    const head = await both(
      async (repository) =>
        smallRequests / (await readAll([repository], { ...many, path: blobPath, sizeBytes: 1_000, method: 'HEAD' })),
    );
    small.push(row(`HEAD of a blob, ${concurrency} at a time`, head, 1, '/s'));
  }
  return small;
}

/** Two registry processes, one per core, which need MongoDB. */
async function twoRegistriesRows(): Promise<Row[]> {
  await using servers = new AsyncDisposableStack();
  const drivers = await openSharedServers(new AptPackages(openTerminal(process.stderr)), servers, { isMeasured: true });
  if ('missing' in drivers) throw new Error(`Nothing to measure: ${drivers.missing}`);
  const registries = ['registry', 'registry2'] as const;
  await using pair = await startPlatform({ drivers, only: [...registries, 'api'], settings });
  const hosts = registries.map((each) => pair.announcedBy(each).registry);
  const repositories = async () => await Promise.all(hosts.map(async (host) => await loggedIn(pair, host)));
  const ours = { what: ', from two registries', repositories };
  const pulls = { sizeBytes: 100 * mib, count: 16, ours };
  return [await pullRow({ ...pulls, concurrency: 4 }), await pullRow({ ...pulls, concurrency: 8 })];
}

/** Docker itself takes most of the time, so there are also rows per CPU second of the registry. */
async function dockerRows(): Promise<Row[]> {
  await using docker = await openDocker();
  const login = { user: platform.account, password: platform.token };
  const targets = {
    ours: { repository: `${platform.registry}/${platform.account}/bench`, login, pid: platform.pid ?? 0 },
    peer: { repository: `${peerRepository.host}:${peerRepository.port}/${peerRepository.name}`, pid: debian.pid },
  };
  const push = { ours: [] as Transfer[], peer: [] as Transfer[] };
  const pull = { ours: [] as Transfer[], peer: [] as Transfer[] };
  for (let round = 0; round < dockerRounds; round += 1) {
    const images = { ours: '', peer: '' };
    for (const side of sidesIn(round)) {
      const pushed = await docker.push(targets[side]);
      push[side].push(pushed.push);
      images[side] = pushed.image;
    }
    for (let pulls = 0; pulls < pullsOfPush; pulls += 1) {
      for (const side of sidesIn(pulls)) pull[side].push(await docker.pull(images[side], targets[side]));
    }
  }
  const rates = ({ ours, peer }: typeof push, seconds: keyof Transfer) => ({
    ours: ours.map((each) => 200 / each[seconds]),
    peer: peer.map((each) => 200 / each[seconds]),
  });
  return [
    row('docker push of 200 MB', rates(push, 'seconds'), 1, ' MB/s'),
    { ...row('— push, per CPU second of the registry', rates(push, 'cpuSeconds'), 1, ' MB/s'), aim: '' },
    row('docker pull of 200 MB', rates(pull, 'seconds'), 1, ' MB/s'),
    { ...row('— pull, per CPU second of the registry', rates(pull, 'cpuSeconds'), 1, ' MB/s'), aim: '' },
  ];
}

/** The whole platform, compared with the reference registry. */
async function memoryRow(): Promise<Row> {
  const peaks = {
    ours: await peakBytesOfPushes(await ourRepository(), platform.pid ?? 0),
    peer: await peakBytesOfPushes(peerRepository, debian.pid),
  };
  return sizeRow('peak memory of 20 concurrent pushes of 100 MiB: Berth / docker-registry', peaks, '< 200 MB');
}

async function perSecond(amount: number, work: () => Promise<void>): Promise<number> {
  const startedMs = performance.now();
  await work();
  return amount / ((performance.now() - startedMs) / 1000);
}

/** Measures both sides, after a warm-up round. */
async function both(rate: (repository: Repository) => Promise<number>): Promise<Pairs> {
  return await inTurn(
    { warmUps: 1, rounds },
    async () => await rate(await ourRepository()),
    async () => await rate(peerRepository),
  );
}

function row(what: string, pairs: Pairs, unit: number, unitName: string): Row {
  const show = (rates: readonly number[]) => `${(median(rates) / unit).toFixed(0)}${unitName}`;
  return pairsRow(`${what}: Berth / docker-registry`, pairs, { show, aim: '> 1 ×' });
}
