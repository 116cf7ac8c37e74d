/**
 * The gain from a second thread of the proxy, measured on a machine without a core for it. Two threads on one port can serve twice
 * the load of one thread if a request takes no more CPU time, and if each thread receives half of the connections. Both are
 * measured: small answers per CPU second of the proxy's threads, and the share of the busier thread.
 */
import { fileURLToPath } from 'node:url';
import { startEngine } from '../test/kit/engines/docker-engine.ts';
import { pushTestImage } from '../test/kit/engines/images.ts';
import { nodeImage } from '../test/kit/engines/node-image.ts';
import { connectReady } from '../test/kit/platform/api-client.ts';
import { startPlatform } from '../test/kit/platform/platform.ts';
import type { TestPlatform } from '../test/kit/platform/platform.ts';
import { threadCpuSeconds } from './machine.ts';
import { inTurn, median, pairsRow, table } from './measurements.ts';
import { runWrk } from './wrk.ts';

const rounds = Number(process.env['BENCH_ROUNDS'] ?? 7);
const seconds = Number(process.env['BENCH_SECONDS'] ?? 3);

/** Enough that the kernel, which chooses a thread by the ports of a connection, assigns almost half to each. */
const connections = 256;

const proxyThreads = /^proxy-/;

interface Side {
  readonly platform: TestPlatform;
  readonly url: string;
  /** The share of the busiest thread in the CPU time of all threads, in each round. */
  readonly busiest: number[];
}

await using engine = await startEngine('stable');
await using two = await startPlatform({ engine, settings: { BERTH_LOG_LEVEL: 'warn', BERTH_PROXY_THREADS: '2' } });
await using one = await startPlatform({ engine, settings: { BERTH_LOG_LEVEL: 'warn', BERTH_PROXY_THREADS: '1' } });
const sides = { ours: await openSide(two), peer: await openSide(one) };
const pairs = await inTurn(
  { warmUps: 1, rounds },
  async () => await perCpuSecond(sides.ours),
  async () => await perCpuSecond(sides.peer),
);
const show = (values: readonly number[]) => `${median(values).toFixed(0)}/s`;
const what = 'small answers per second of the proxy’s processor time: two threads on one port (peer: one)';
const share = `${(100 * median(sides.ours.busiest)).toFixed(0)} %`;
const shares = { what: '— share of the busier of the two threads', ours: share, peer: '', ratio: '', aim: '50 %' };
process.stdout.write(`${table([pairsRow(what, pairs, { show, aim: '≥ 0.9 ×' }), shares])}\n`);

async function openSide(platform: TestPlatform): Promise<Side> {
  const folder = fileURLToPath(new URL('isolation-app', import.meta.url));
  const image = await nodeImage({ tag: 'berth-bench/small:latest', folder, packages: [] });
  await pushTestImage(engine, platform, { image, service: 'serve' });
  const { url } = await connectReady(platform, 'serve', { key: 'held' });
  return { platform, url, busiest: [] };
}

async function perCpuSecond({ platform, url, busiest }: Side): Promise<number> {
  const { pid = 0 } = platform;
  const before = await threadCpuSeconds(pid, proxyThreads);
  const { requests } = await runWrk({ url, seconds, connections });
  const used = (await threadCpuSeconds(pid, proxyThreads)).map((after, i) => after - (before[i] ?? 0));
  const all = used.reduce((sum, each) => sum + each, 0);
  busiest.push(Math.max(...used) / all);
  return requests / all;
}
