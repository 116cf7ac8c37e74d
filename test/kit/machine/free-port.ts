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

/**
 * Returns a port that was just free on loopback.
 *
 * @param also - The distance to another port that the server opens, a multiple of 16, which was free too. 0: it opens no other one
 */
export async function freePort(also = 0): Promise<number> {
  const runner = Number(process.env['VITEST_POOL_ID'] ?? 0) % runners;
  const port = firstPort + runner + runners * randomInt(Math.floor((lastPort + 1 - also - firstPort) / runners));
  const ports = [...new Set([port, port + also])];
  if (ports.some((each) => returned.has(each))) return await freePort(also);
  for (const each of ports) returned.add(each);
  return (await Promise.all(ports.map(isFree))).every(Boolean) ? port : await freePort(also);
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
