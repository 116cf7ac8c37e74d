/** Connects to a key that is held, on one core, compared with an Express server that only parses and answers. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { connectReady } from '../test/kit/platform/api-client.ts';
import type { TestPlatform } from '../test/kit/platform/platform.ts';
import { inTurn, median, pairsRow } from './measurements.ts';
import type { Row } from './measurements.ts';
import { requestsPerSecond } from './load.ts';
import { pin } from './machine.ts';

const rounds = 5;
const requests = 4_000;
const connections = 32;

/** The measured server and its load each have their own core. */
const serverCore = 0;
const loadCore = 1;

/** Measures both in turn; each round sends a fixed number of requests. The service `serve` must exist. */
export async function heldKey(platform: TestPlatform): Promise<Row> {
  await connectReady(platform, 'serve', { key: 'held' });
  const peer = spawn(process.execPath, [join(import.meta.dirname, 'express-peer.ts')], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  try {
    const [peerUrl] = (await once(createInterface(peer.stdout), 'line')) as [string];
    const pinned = [platform.pid, peer.pid].every((pid) => pid !== undefined && pin(pid, serverCore));
    pin(process.pid, loadCore);
    const load = { body: JSON.stringify({ key: 'held' }), connections, requests };
    const headers = { 'content-type': 'application/json', authorization: `Bearer ${platform.token}` };
    const url = `${platform.apiUrl}/v2/service/${platform.account}/serve/connect`;
    const pairs = await inTurn(
      { warmUps: 0, rounds },
      async () => await requestsPerSecond({ ...load, url, headers }),
      async () => await requestsPerSecond({ ...load, url: peerUrl, headers }),
    );
    const what = `connect to a held key / Express that only answers${pinned ? ', one core' : ', not pinned'}`;
    return pairsRow(what, pairs, { show: (rates) => `${median(rates).toFixed(0)}/s`, aim: '≥ 1500/s' });
  } finally {
    peer.kill();
  }
}
