/** The service API compared with an Express server that parses the same JSON and returns the same amount, each on one core. */
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
  /** The name of the request in the report. */
  readonly what: string;
  readonly method: 'GET' | 'POST';
  readonly path: string;
  readonly body?: object;
  readonly aim: string;
}

/**
 * Measures a request and the peer in turn; each round sends a fixed number of requests. In addition to the rates, the row has the CPU
 * time of a request, which other programs on the machine affect less.
 */
export async function apiRow(platform: TestPlatform, { what, method, path, body, aim }: ApiRequest): Promise<Row> {
  const peer = spawn(process.execPath, [join(import.meta.dirname, 'express-peer.ts')], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  try {
    const [peerUrl] = (await once(createInterface(peer.stdout), 'line')) as [string];
    const ours = sideOf(platform, path);
    return await serversRow(
      { ours, peer: { ...ours, pid: peer.pid, url: peerUrl } },
      { what: `${what} / Express that only answers`, method, body, aim },
    );
  } finally {
    peer.kill();
  }
}

/** Measures a request to two platforms in turn. */
export async function platformsRow(
  { ours, peer }: { readonly ours: TestPlatform; readonly peer: TestPlatform },
  { path, ...request }: ApiRequest,
): Promise<Row> {
  return await serversRow({ ours: sideOf(ours, path), peer: sideOf(peer, path) }, request);
}

interface Side {
  readonly pid: number | undefined;
  readonly url: string;
  readonly token: string;
}

function sideOf({ pid, apiUrl, token }: TestPlatform, path: string): Side {
  return { pid, url: apiUrl + path, token };
}

async function serversRow(
  { ours, peer }: { readonly ours: Side; readonly peer: Side },
  { what, method, body, aim }: Omit<ApiRequest, 'path' | 'body'> & { readonly body?: object | undefined },
): Promise<Row> {
  const pinned = [ours, peer].every(({ pid }) => pid !== undefined && pin(pid, serverCore));
  pin(process.pid, loadCore);
  const cpu = { ours: [] as number[], peer: [] as number[] };
  const measured =
    ({ pid = 0, url, token }: Side, cpuMicroseconds: number[]) =>
    async () => {
      const headers = { 'content-type': 'application/json', authorization: `Bearer ${token}` };
      const before = await cpuSeconds(pid);
      const rate = await requestsPerSecond({
        method,
        url,
        headers,
        connections,
        requests,
        ...(body && { body: JSON.stringify(body) }),
      });
      cpuMicroseconds.push((((await cpuSeconds(pid)) - before) * 1e6) / requests);
      return rate;
    };
  const pairs = await inTurn({ warmUps, rounds }, measured(ours, cpu.ours), measured(peer, cpu.peer));
  const show = (rates: readonly number[]) => `${median(rates).toFixed(0)}/s`;
  const row = pairsRow(`${what}${pinned ? ', one core' : ', not pinned'}`, pairs, { show, aim });
  const [our, their] = [cpu.ours, cpu.peer].map((values) => median(values.slice(warmUps))) as [number, number];
  return {
    ...row,
    ours: `${row.ours}, ${our.toFixed(0)} µs`,
    peer: `${row.peer}, ${their.toFixed(0)} µs`,
    ratio: `${row.ratio}, by CPU ${(their / our).toFixed(2)} ×`,
  };
}
