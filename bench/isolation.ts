/**
 * How much pushes, connects and a garbage collection delay sessions: the slowest percent of small answers through the proxy while the
 * platform is idle and while it works, with the proxy in its own thread and without. An argument sets the size of a push in MiB. The
 * proxy, a backend and this client run on one core, and all other work on the second. Needs two cores on which no other program runs.
 */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { runCommand } from '../setup/command.ts';
import { connectReady } from '../test/kit/platform/api-client.ts';
import { startEngine } from '../test/kit/engines/docker-engine.ts';
import type { TestEngine } from '../test/kit/engines/docker-engine.ts';
import { pushTestImage } from '../test/kit/engines/images.ts';
import { nodeImage } from '../test/kit/engines/node-image.ts';
import { startPlatform } from '../test/kit/platform/platform.ts';
import type { TestPlatform } from '../test/kit/platform/platform.ts';
import type { LoadData } from './isolation-load.ts';
import { pin, pinThreads, threadWaitSeconds } from './machine.ts';
import { median, quantile, sidesIn, table } from './measurements.ts';
import type { Row } from './measurements.ts';
import { RawConnection } from './raw-connection.ts';

const rounds = Number(process.env['BENCH_ROUNDS'] ?? 3);
const probeMs = 8_000;
const connections = 8;

/** The time between the requests of a connection. Low, because latency is measured, not throughput. */
const everyMs = 10;

/** The load and the probe must not share a core, or the probe would measure its own wait. */
const loadCore = 0;
const sessionCore = 1;

/** The names of the threads that serve sessions, and of V8's garbage collector threads, which all threads of a process share. */
const proxyThread = /^proxy-/;
const mainThread = /^MainThread$/;
const collectorThread = /^V8Worker$/;

const pushMib = Number(process.argv[2] ?? 256);

interface Side {
  readonly platform: TestPlatform;
  readonly url: string;
  /** The name of the thread with the proxy. */
  readonly serving: RegExp;
  /** The slowest percent, in milliseconds, of each round. */
  readonly idle: number[];
  readonly loaded: number[];
  /** The share of the time in which that thread waited for its core, idle and loaded. Berth does not cause this delay. */
  readonly waits: { readonly idle: number[]; readonly loaded: number[] };
  /** What the load did in all rounds. */
  readonly work: { pushes: number; connects: number; collections: number };
}

await using engine = await startEngine('stable');
await using threaded = await startPlatform({ engine, settings: { BERTH_LOG_LEVEL: 'warn' } });
await using shared = await startPlatform({ engine, settings: { BERTH_LOG_LEVEL: 'warn', BERTH_PROXY_THREADS: '0' } });
pin(process.pid, sessionCore);
const sides = { ours: await openSide(threaded, proxyThread), peer: await openSide(shared, mainThread) };
for (let round = 0; round < rounds; round += 1) {
  for (const name of sidesIn(round)) {
    const side = sides[name];
    side.idle.push(await probe(side, 'idle'));
    side.loaded.push(await underLoad(side));
  }
}
process.stdout.write(`${table([row('idle'), row('loaded'), ratioRow()])}\n`);
for (const [name, { work, waits }] of Object.entries(sides)) {
  const share = (values: readonly number[]) => `${(100 * median(values)).toFixed(1)} %`;
  const waited = `the proxy waits for its core ${share(waits.idle)} of the time idle, ${share(waits.loaded)} loaded`;
  process.stdout.write(`${name}: ${JSON.stringify(work)}; ${waited}\n`);
}

/** @param serving - the name of the thread with the proxy */
async function openSide(platform: TestPlatform, serving: RegExp): Promise<Side> {
  const folder = fileURLToPath(new URL('isolation-app', import.meta.url));
  const image = await nodeImage({ tag: 'berth-bench/small:latest', folder, packages: [] });
  await pushTestImage(engine, platform, { image, service: 'serve' });
  const { url } = await connectReady(platform, 'serve', { key: 'held' });
  const { pid = 0 } = platform;
  pin(pid, loadCore);
  await pinThreads(pid, serving, `${sessionCore}`);
  await pinThreads(pid, collectorThread, `${loadCore},${sessionCore}`);
  await pinBackends(engine);
  return {
    platform,
    url,
    serving,
    idle: [],
    loaded: [],
    waits: { idle: [], loaded: [] },
    work: { pushes: 0, connects: 0, collections: 0 },
  };
}

async function pinBackends({ host }: TestEngine): Promise<void> {
  const docker = async (...args: string[]) => await runCommand('docker', args, { env: { DOCKER_HOST: host } });
  for (const id of (await docker('ps', '--quiet')).split('\n').filter(Boolean)) {
    pin(Number(await docker('inspect', '--format', '{{.State.Pid}}', id)), sessionCore);
  }
}

/** The 99th percentile of small answers, in milliseconds. */
async function probe({ platform, url, serving, waits }: Side, state: 'idle' | 'loaded'): Promise<number> {
  const { hostname, port, pathname } = new URL(url);
  const head = `GET ${pathname} HTTP/1.1\r\nhost: ${hostname}:${port}\r\n\r\n`;
  const times: number[] = [];
  const { pid = 0 } = platform;
  const waitedBefore = await threadWaitSeconds(pid, serving);
  const until = performance.now() + probeMs;
  const ask = async () => {
    using connection = await RawConnection.open(hostname, Number(port));
    for (let dueMs = performance.now(); performance.now() < until; dueMs += everyMs) {
      await delay(Math.max(0, dueMs - performance.now()));
      const startedMs = performance.now();
      await connection.ask(head, true);
      times.push(performance.now() - startedMs);
    }
  };
  await Promise.all(Array.from({ length: connections }, ask));
  waits[state].push(((await threadWaitSeconds(pid, serving)) - waitedBefore) / (probeMs / 1_000));
  return quantile(times, 0.99);
}

async function underLoad(side: Side): Promise<number> {
  const { platform, work } = side;
  const { account, token, apiUrl, registry, environment } = platform;
  const data: LoadData = { account, token, apiUrl, registry, environment, pushMib };
  const load = fork(fileURLToPath(new URL('isolation-load.ts', import.meta.url)), { serialization: 'advanced' });
  try {
    pin(load.pid ?? 0, loadCore);
    load.send(data);
    // The load has created its blobs.
    await once(load, 'message');
    await delay(1_000);
    const slowest = await probe(side, 'loaded');
    load.send('stop');
    const [counts] = (await once(load, 'message')) as [Side['work']];
    for (const kind of ['pushes', 'connects', 'collections'] as const) work[kind] += counts[kind];
    return slowest;
  } finally {
    load.kill();
  }
}

function row(state: 'idle' | 'loaded'): Row {
  const show = (values: readonly number[]) => `${median(values).toFixed(2)} ms`;
  const ratio = median(sides.ours[state]) / median(sides.peer[state]);
  const what = `p99 of small answers, ${state}: thread of its own / shared thread`;
  return {
    what,
    ours: show(sides.ours[state]),
    peer: show(sides.peer[state]),
    ratio: `${ratio.toFixed(2)} ×`,
    aim: '',
  };
}

function ratioRow(): Row {
  const of = ({ idle, loaded }: Side) => median(loaded.map((value, i) => value / (idle[i] ?? Number.NaN)));
  const [ours, peer] = [of(sides.ours), of(sides.peer)];
  const what = `— loaded (4 pushes of ${pushMib} MiB, 500 connects/s, collections) / idle`;
  const ratio = `${(ours / peer).toFixed(2)} ×`;
  return { what, ours: `${ours.toFixed(1)} ×`, peer: `${peer.toFixed(1)} ×`, ratio, aim: '≤ 2 × where a core is free' };
}
