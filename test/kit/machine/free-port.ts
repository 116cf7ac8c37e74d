/** Ports for servers that need a fixed port, and keep it over restarts. */
import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:net';

/**
 * Below the ephemeral ports of the system (from 32768 on Linux, 49152 elsewhere): an outgoing connection could use an ephemeral
 * port before the server listens, or while it restarts.
 */
const firstPort = 12_000;
const lastPort = 32_767;

/** Test files run in parallel, numbered by vitest from 1. Each uses every sixteenth port, so that no two choose the same. */
const runners = 16;

const returned = new Set<number>();

/** Returns a port that was just free on loopback, at most `maxPort`. */
export async function freePort(maxPort = lastPort): Promise<number> {
  const runner = Number(process.env['VITEST_POOL_ID'] ?? 0) % runners;
  const port = firstPort + runner + runners * randomInt(Math.floor((maxPort + 1 - firstPort) / runners));
  if (returned.has(port)) return await freePort(maxPort);
  returned.add(port);
  return (await isFree(port)) ? port : await freePort(maxPort);
}

/** Returns several such ports, all different. */
export async function freePorts(count: number): Promise<number[]> {
  return await Promise.all(Array.from({ length: count }, async () => await freePort()));
}

async function isFree(port: number): Promise<boolean> {
  const server = createServer();
  try {
    await once(server.listen(port, '127.0.0.1'), 'listening');
  } catch {
    return false;
  }
  await once(server.close(), 'close');
  return true;
}
