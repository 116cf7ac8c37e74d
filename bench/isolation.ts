/**
 * How much pushes, connects and a garbage collection delay sessions: the slowest percent of small answers through the proxy while the
 * platform is idle and while it works, with the proxy in a thread of its own and without. An argument sets the size of a push in MiB.
 */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { connectReady } from '../test/kit/platform/api-client.ts';
import { startEngine } from '../test/kit/engines/docker-engine.ts';
import type { TestEngine } from '../test/kit/engines/docker-engine.ts';
import { pushTestImage, testImage } from '../test/kit/engines/images.ts';
import { startPlatform } from '../test/kit/platform/platform.ts';
import type { TestPlatform } from '../test/kit/platform/platform.ts';
import type { LoadData } from './isolation-load.ts';
import { pin } from './machine.ts';
import { median, quantile, sidesIn, table } from './measurements.ts';
import type { Row } from './measurements.ts';
import { RawConnection } from './raw-connection.ts';

const rounds = 3;
const probeMs = 8_000;
const connections = 8;

/** Each connection asks this often: what is measured is the wait, not the throughput. */
const everyMs = 10;

/** What works and what measures must not share a core, or the probe would measure its own wait. */
const loadCore = 0;

const pushMib = Number(process.argv[2] ?? 256);

interface Side {
  readonly platform: TestPlatform;
  readonly url: string;
  /** The slowest percent, in milliseconds, of each round. */
  readonly idle: number[];
  readonly loaded: number[];
  /** What the load did in all rounds. */
  readonly work: { pushes: number; connects: number; collections: number };
}

await using engine = await startEngine('stable');
await using threaded = await startPlatform({ engine, settings: { BERTH_LOG_LEVEL: 'warn' } });
await using shared = await startPlatform({ engine, settings: { BERTH_LOG_LEVEL: 'warn', BERTH_PROXY_THREADS: '0' } });
const sides = { ours: await openSide(threaded, engine), peer: await openSide(shared, engine) };
for (let round = 0; round < rounds; round += 1) {
  for (const name of sidesIn(round)) {
    const side = sides[name];
    side.idle.push(await probe(side.url));
    side.loaded.push(await underLoad(side));
  }
}
process.stdout.write(`${table([row('idle'), row('loaded'), ratioRow()])}\n`);
for (const [name, { work }] of Object.entries(sides)) process.stdout.write(`${name}: ${JSON.stringify(work)}\n`);

async function openSide(platform: TestPlatform, on: TestEngine): Promise<Side> {
  await pushTestImage(on, platform, { image: await testImage('serve'), service: 'serve' });
  const { url } = await connectReady(platform, 'serve', { key: 'held' });
  return { platform, url, idle: [], loaded: [], work: { pushes: 0, connects: 0, collections: 0 } };
}

/** The 99th percentile of small answers, in milliseconds. */
async function probe(url: string): Promise<number> {
  const { hostname, port, pathname } = new URL(url);
  const head = `GET ${pathname} HTTP/1.1\r\nhost: ${hostname}:${port}\r\n\r\n`;
  const times: number[] = [];
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
  return quantile(times, 0.99);
}

async function underLoad({ platform, url, work }: Side): Promise<number> {
  const { account, token, apiUrl, registry, environment } = platform;
  const data: LoadData = { account, token, apiUrl, registry, environment, pushMib };
  const load = fork(fileURLToPath(new URL('isolation-load.ts', import.meta.url)), { serialization: 'advanced' });
  try {
    pin(load.pid ?? 0, loadCore);
    load.send(data);
    // It has made what it pushes.
    await once(load, 'message');
    await delay(1_000);
    const slowest = await probe(url);
    load.send('stop');
    const [did] = (await once(load, 'message')) as [Side['work']];
    for (const kind of ['pushes', 'connects', 'collections'] as const) work[kind] += did[kind];
    return slowest;
  } finally {
    load.kill();
  }
}

function row(state: 'idle' | 'loaded'): Row {
  const show = (values: readonly number[]) => `${median(values).toFixed(1)} ms`;
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
