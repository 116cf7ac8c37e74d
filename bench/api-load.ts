/** The service API compared with an Express server that parses the same JSON and answers with as much, each on one core. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { TestPlatform } from '../test/kit/platform/platform.ts';
import { requestsPerSecond } from './load.ts';
import { cpuSeconds, pin } from './machine.ts';
import { inTurn, median, pairsRow } from './measurements.ts';
import type { Row } from './measurements.ts';

const rounds = 5;

/** Node optimizes the code of a request while it runs. */
const warmUps = 3;

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

/**
 * Measures a request and the peer in turn; each round sends a fixed number of requests. Beside the rates, the row has the CPU time of a
 * request, which other programs on the machine disturb less.
 */
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
    const side = (pid: number, url: string, cpuMicroseconds: number[]) => async () => {
      const before = await cpuSeconds(pid);
      const rate = await requestsPerSecond({ ...load, url });
      cpuMicroseconds.push((((await cpuSeconds(pid)) - before) * 1e6) / requests);
      return rate;
    };
    const cpu = { ours: [] as number[], peer: [] as number[] };
    const pairs = await inTurn(
      { warmUps, rounds },
      side(platform.pid ?? 0, platform.apiUrl + path, cpu.ours),
      side(peer.pid ?? 0, peerUrl, cpu.peer),
    );
    const show = (rates: readonly number[]) => `${median(rates).toFixed(0)}/s`;
    const name = `${what} / Express that only answers${pinned ? ', one core' : ', not pinned'}`;
    const row = pairsRow(name, pairs, { show, aim });
    const [ours, theirs] = [cpu.ours, cpu.peer].map((values) => median(values.slice(warmUps))) as [number, number];
    return {
      ...row,
      ours: `${row.ours}, ${ours.toFixed(0)} µs`,
      peer: `${row.peer}, ${theirs.toFixed(0)} µs`,
      ratio: `${row.ratio}, by CPU ${(theirs / ours).toFixed(2)} ×`,
    };
  } finally {
    peer.kill();
  }
}
