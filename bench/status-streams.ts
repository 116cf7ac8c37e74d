/** Many open status streams: the memory of the platform, and the time until a change has reached all of them. Linux only. */
import { once } from 'node:events';
import { connect as connectTo } from 'node:net';
import type { Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { residentBytes } from '../test/kit/machine/resident-memory.ts';
import { connect, terminate } from '../test/kit/platform/api-client.ts';
import type { TestPlatform } from '../test/kit/platform/platform.ts';
import { cpuSeconds } from './machine.ts';
import type { Row } from './measurements.ts';

const streams = 5_000;

/** Opened at the same time; more would overflow the queue of a listening socket. */
const batch = 100;

/** Long enough for the garbage collector to free the memory of the requests. */
const settleMs = 3_000;

/** Opens the streams of one backend, stops that backend, and waits until every stream has the change. */
export async function statusStreamRows(platform: TestPlatform, service: string): Promise<Row[]> {
  const { backend_id: id, status_url: url } = await connect(platform, service);
  const opened: Socket[] = [];
  try {
    while (opened.length < streams) {
      opened.push(
        ...(await Promise.all(Array.from({ length: batch }, async () => await open(new URL(`${url}/stream`))))),
      );
    }
    await delay(settleMs);
    const memory = await residentBytes(platform.pid);
    const changed = opened.map(
      async (socket) =>
        await new Promise<void>((resolve) => {
          socket.on('data', (chunk) => {
            if (chunk.includes('"terminat')) resolve();
          });
        }),
    );
    const cpuBefore = await cpuSeconds(platform.pid ?? 0);
    const startedMs = performance.now();
    await terminate(platform, id, true);
    await Promise.all(changed);
    const tookMs = performance.now() - startedMs;
    const cpuMs = (await cpuSeconds(platform.pid ?? 0)) * 1000 - cpuBefore * 1000;
    const row = { peer: '—', ratio: '—' };
    return [
      {
        ...row,
        what: `memory with ${streams} open status streams`,
        ours: `${(memory / 1e6).toFixed(0)} MB`,
        aim: '< 300 MB',
      },
      {
        ...row,
        what: `a stop reaches ${streams} status streams`,
        ours: `${tookMs.toFixed(0)} ms, ${cpuMs.toFixed(0)} ms of CPU`,
        aim: '≤ 250 ms',
      },
    ];
  } finally {
    for (const socket of opened) socket.destroy();
  }
}

/** Opens a stream, and waits for its first event. A socket, because an HTTP client would use more CPU time than the platform. */
async function open({ hostname, port, host, pathname }: URL): Promise<Socket> {
  const socket = connectTo({ host: hostname, port: Number(port) });
  socket.write(`GET ${pathname} HTTP/1.1\r\nhost: ${host}\r\n\r\n`);
  for (;;) {
    const [chunk] = (await once(socket, 'data')) as [Buffer];
    if (chunk.includes('data:')) return socket;
  }
}
