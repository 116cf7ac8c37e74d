/**
 * The memory of 5,000 idle WebSockets in the proxy, each with a connection of its client and a connection to its backend. A few
 * messages have passed through each, and pings are on. Linux only.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { residentBytes } from '../test/kit/machine/resident-memory.ts';
import { openApplication, upgraded } from './proxy-peers/application.ts';
import { startBerth } from './proxy-peers/peers.ts';

const count = 5_000;
const atATime = 50;

/** Longer than the time after which clients are pinged. */
const settleMs = 5_000;

await using application = await openApplication();
await using proxy = await startBerth({ token: 'user', backendPort: application.port });
const url = new URL(`http://127.0.0.1:${proxy.port}/${proxy.token}/application/ws`);
await open(200);
const before = await settled();
const sockets = await open(count);
const after = await settled();
const each = (after - before) / count;
process.stdout.write(
  `${(each / 1024).toFixed(1)} KiB per idle WebSocket of ${count} (${before} to ${after} bytes); aim: 12 KB\n`,
);
for (const socket of sockets) socket.destroy();
// `process.exit` does not dispose the proxy.
process.kill(proxy.pid);
process.exit();

/** Opens WebSockets through the proxy, and sends a message through each. */
async function open(wanted: number) {
  const opened: Awaited<ReturnType<typeof upgraded>>[] = [];
  while (opened.length < wanted) {
    const next = await Promise.all(Array.from({ length: atATime }, async () => await upgraded(url)));
    for (const socket of next) {
      socket.on('error', () => {}).resume();
      socket.write('x'.repeat(64));
    }
    opened.push(...next);
  }
  return opened;
}

/** The memory of the proxy after a garbage collection, which V8 runs in a process that is idle for half a minute. */
async function settled(): Promise<number> {
  await delay(settleMs);
  process.kill(proxy.pid, 'SIGUSR2');
  await delay(settleMs);
  return await residentBytes(proxy.pid);
}
