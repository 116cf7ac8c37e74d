/** Memory of the idle platform, compared with an idle Node process; and peak memory of a registry during pushes. Linux only. */
import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as delay } from 'node:timers/promises';
import type { TestEngine } from '../test/kit/engines/docker-engine.ts';
import { removeFromEngine } from '../test/kit/engines/engine-client.ts';
import { endProcess } from '../test/kit/machine/end-process.ts';
import { residentBytes } from '../test/kit/machine/resident-memory.ts';
import { temporaryFolder } from '../test/kit/machine/temporary-folder.ts';
import type { TestPlatform } from '../test/kit/platform/platform.ts';
import { sizeRow } from './measurements.ts';
import type { Row } from './measurements.ts';
import { Pusher, atATime, newBlobs } from './registry-load.ts';
import type { Repository } from './registry-load.ts';

const root = join(import.meta.dirname, '..');

/** The number and size of blobs that are pushed at once. */
const pushes = 20;
const sizeBytes = 100 * 1024 * 1024;

/** Long enough for the garbage collector to free the memory of the start. */
const settleMs = 30_000;

/** Restarts the platform, so that it is idle, and measures both. */
export async function idleMemory(platform: TestPlatform): Promise<Row> {
  await platform.stop();
  await platform.restart();
  const bare = spawn(process.execPath, ['--eval', 'setInterval(() => {}, 1000)'], { stdio: 'ignore' });
  try {
    await delay(settleMs);
    const resident = { ours: await residentBytes(platform.pid), peer: await residentBytes(bare.pid) };
    return sizeRow('resident memory of the idle platform / of an idle Node', resident, '≤ 150 MB');
  } finally {
    bare.kill();
  }
}

/**
 * Runs `npm start` as in a fresh clone, without compiled sources, and then a second time. Both runs begin with an empty data
 * folder, push the sample application and start its first session.
 */
export async function idleStarts(engine: TestEngine): Promise<Row[]> {
  await using cache = await temporaryFolder();
  const first = await idleStart(engine, cache.path);
  const second = await idleStart(engine, cache.path);
  const row = (which: string, ours: number) =>
    sizeRow(`resident memory of ${which} npm start, idle with its sample, beside 150 MB`, { ours, peer: 150e6 }, '≤ 1');
  return [row('a first', first), row('a second', second)];
}

async function idleStart(engine: TestEngine, compileCache: string): Promise<number> {
  await using data = await temporaryFolder();
  const node = `bench-${randomBytes(4).toString('hex')}`;
  const ports = ['API', 'REGISTRY', 'PROXY', 'OPERATIONS'].map((name) => [`BERTH_${name}_PORT`, '0']);
  const child = spawn('sh', [join(root, 'bin/berth'), 'start', '--json', '--no-install'], {
    env: {
      PATH: process.env['PATH'],
      HOME: process.env['HOME'],
      NODE_COMPILE_CACHE: compileCache,
      DOCKER_HOST: engine.host,
      BERTH_DATA_FOLDER: data.path,
      BERTH_NODE: node,
      BERTH_FIREWALL: 'off',
      ...Object.fromEntries(ports),
    },
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  try {
    const line = await new Promise<string>((resolve) => createInterface(child.stdout).once('line', resolve));
    if (!line.includes('"sample_url"')) throw new Error(`The sample application did not start: ${line}`);
    await delay(settleMs);
    return await residentBytes(child.pid);
  } finally {
    await endProcess(child, 'SIGTERM');
    await removeFromEngine(engine, node);
  }
}

/** The peak memory of a registry's process during the pushes. */
export async function peakBytesOfPushes(repository: Repository, pid: number): Promise<number> {
  // Resets the peak that the kernel records (man 5 proc, clear_refs).
  await writeFile(`/proc/${pid}/clear_refs`, '5');
  using pusher = new Pusher(repository);
  const blobs = newBlobs(pushes, sizeBytes);
  await atATime(pushes, blobs, async (blob) => await pusher.blob(blob));
  const status = await readFile(`/proc/${pid}/status`, 'utf8');
  return Number(/^VmHWM:\s+(\d+) kB$/m.exec(status)?.[1]) * 1024;
}
