/** The service API compared with an Express server that parses the same JSON and answers with as much, each on one core. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { TestPlatform } from '../test/kit/platform/platform.ts';
import { requestsPerSecond } from './load.ts';
import { pin } from './machine.ts';
import { inTurn, median, pairsRow } from './measurements.ts';
import type { Row } from './measurements.ts';

const rounds = 5;
const requests = 4_000;
const connections = 32;

/** The measured server and its load each have their own core. */
const serverCore = 0;
const loadCore = 1;

/** A request to the service API. */
export interface ApiRequest {
  /** How the report names it. */
  readonly what: string;
  readonly method: 'GET' | 'POST';
  readonly path: string;
  readonly body?: object;
  readonly aim: string;
}

/** Measures a request and the peer in turn; each round sends a fixed number of requests. */
export async function apiRow(platform: TestPlatform, { what, method, path, body, aim }: ApiRequest): Promise<Row> {
  const peer = spawn(process.execPath, [join(import.meta.dirname, 'express-peer.ts')], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  try {
    const [peerUrl] = (await once(createInterface(peer.stdout), 'line')) as [string];
    const pinned = [platform.pid, peer.pid].every((pid) => pid !== undefined && pin(pid, serverCore));
    pin(process.pid, loadCore);
    const headers = { 'content-type': 'application/json', authorization: `Bearer ${platform.token}` };
    const load = { method, headers, connections, requests, ...(body && { body: JSON.stringify(body) }) };
    const pairs = await inTurn(
      { warmUps: 1, rounds },
      async () => await requestsPerSecond({ ...load, url: platform.apiUrl + path }),
      async () => await requestsPerSecond({ ...load, url: peerUrl }),
    );
    const show = (rates: readonly number[]) => `${median(rates).toFixed(0)}/s`;
    return pairsRow(`${what} / Express that only answers${pinned ? ', one core' : ', not pinned'}`, pairs, {
      show,
      aim,
    });
  } finally {
    peer.kill();
  }
}
