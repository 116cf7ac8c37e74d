/** The load of `isolation.ts`, in its own process: pushes, connects and garbage collections until the parent stops it. */
import { Agent, request } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { runBerth } from '../test/kit/platform/berth-command.ts';
import type { TestPlatform } from '../test/kit/platform/platform.ts';
import { Pusher, newBlobs } from './registry-load.ts';

export type LoadData = Pick<TestPlatform, 'account' | 'token' | 'apiUrl' | 'registry' | 'environment'> & {
  readonly pushMib: number;
};

const pushers = 4;
const connectsPerSecond = 500;

/** Connects are sent in steps of this length. */
const stepMs = 20;

/** Upper bound of open connects, which wait if the platform is slower. */
const maxOpen = 100;

const collectEveryMs = 2_000;

const work = { pushes: 0, connects: 0, collections: 0 };
const stop = new AbortController();
let running: Promise<unknown> = Promise.resolve();

process.on('message', (message: LoadData | 'stop') => {
  if (message === 'stop') {
    stop.abort();
    process.send?.(work);
  } else running = Promise.all([push(message), connect(message), collect(message)]);
});
// An error ends the process, and with it the measurement.
void running;

async function push({ account, token, registry, pushMib }: LoadData): Promise<void> {
  const [host = '', port = ''] = registry.split(':');
  const authorization = `Basic ${Buffer.from(`${account}:${token}`).toString('base64')}`;
  const blobs = newBlobs(pushers, pushMib * 1024 * 1024);
  process.send?.('ready');
  const pushing = blobs.map(async (blob) => {
    using pusher = new Pusher({ host, port: Number(port), name: `${account}/load`, authorization });
    while (!stop.signal.aborted) {
      await pusher.blob(blob);
      work.pushes += 1;
    }
  });
  await Promise.all(pushing);
}

async function connect({ account, token, apiUrl }: LoadData): Promise<void> {
  const agent = new Agent({ keepAlive: true, maxSockets: 32 });
  const url = `${apiUrl}/v2/service/${account}/serve/connect`;
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
  let open = 0;
  while (!stop.signal.aborted) {
    for (let i = 0; i < (connectsPerSecond * stepMs) / 1_000 && open < maxOpen; i += 1) {
      open += 1;
      const sent = request(url, { method: 'POST', agent, headers }, (answer) => {
        answer.resume();
        answer.once('close', () => (open -= 1));
        if (answer.statusCode !== 200) throw new Error(`A connect returned ${answer.statusCode}`);
        work.connects += 1;
      });
      sent.on('error', (error) => {
        // Connects that are open at the end are aborted.
        if (!stop.signal.aborted) throw error;
      });
      sent.end('{"key":"held"}');
    }
    await delay(stepMs);
  }
  agent.destroy();
}

async function collect(platform: LoadData): Promise<void> {
  while (!stop.signal.aborted) {
    const { code, stderr } = await runBerth(platform, 'collect');
    if (code !== 0) throw new Error(`The collection failed: ${stderr}`);
    work.collections += 1;
    await delay(collectEveryMs);
  }
}
