/** Ports for servers that have to be told theirs, and keep it when they are started again. */
import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:net';

/**
 * Ports below those that systems hand out by themselves, from 32768 on Linux and 49152 elsewhere: any connection that
 * leaves this machine could have one of those before the server listens, or while it is started again.
 */
const firstPort = 12_000;
const lastPort = 32_767;

/** Test files run beside each other, numbered by vitest from 1: each takes every sixteenth port, so that no two choose the same. */
const runners = 16;

const given = new Set<number>();

/** A port of loopback that was free a moment ago; at most `maxPort`. */
export async function freePort(maxPort = lastPort): Promise<number> {
  const runner = Number(process.env['VITEST_POOL_ID'] ?? 0) % runners;
  const port = firstPort + runner + runners * randomInt(Math.floor((maxPort + 1 - firstPort) / runners));
  if (given.has(port)) return await freePort(maxPort);
  given.add(port);
  return (await isFree(port)) ? port : await freePort(maxPort);
}

/** Ports of loopback that were free a moment ago, all different. */
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
