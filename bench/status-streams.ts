/** Many open status streams: the memory of the platform, and how long a change takes to reach all of them. Linux only. */
import { once } from 'node:events';
import { Agent, get } from 'node:http';
import type { IncomingMessage } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { connect, terminate } from '../test/kit/platform/api-client.ts';
import type { TestPlatform } from '../test/kit/platform/platform.ts';
import { residentBytes } from './memory.ts';
import type { Row } from './measurements.ts';

const streams = 5_000;

/** Opened at the same time; more would overflow the queue of a listening socket. */
const batch = 100;

/** Long enough for the garbage collector to free the memory of the requests. */
const settleMs = 3_000;

/** Opens the streams of one backend, stops that backend, and waits until every stream has the change. */
export async function statusStreamRows(platform: TestPlatform, service: string): Promise<Row[]> {
  const { backend_id: id, status_url: url } = await connect(platform, service);
  const agent = new Agent({ maxSockets: streams });
  const opened: IncomingMessage[] = [];
  try {
    while (opened.length < streams) {
      opened.push(
        ...(await Promise.all(Array.from({ length: batch }, async () => await open(`${url}/stream`, agent)))),
      );
    }
    await delay(settleMs);
    const memory = await residentBytes(platform.pid);
    const changed = opened.map(async (response) => {
      for await (const chunk of response) if (String(chunk).includes('"terminat')) return;
    });
    const startedMs = performance.now();
    await terminate(platform, id, true);
    await Promise.all(changed);
    const tookMs = performance.now() - startedMs;
    const row = { peer: '—', ratio: '—' };
    return [
      {
        ...row,
        what: `memory with ${streams} open status streams`,
        ours: `${(memory / 1e6).toFixed(0)} MB`,
        aim: '< 300 MB',
      },
      { ...row, what: `a stop reaches ${streams} status streams`, ours: `${tookMs.toFixed(0)} ms`, aim: '≤ 250 ms' },
    ];
  } finally {
    for (const response of opened) response.destroy();
    agent.destroy();
  }
}

/** Opens a stream, and returns it when its first event is here. */
async function open(url: string, agent: Agent): Promise<IncomingMessage> {
  const [response] = (await once(get(url, { agent }), 'response')) as [IncomingMessage];
  await once(response, 'readable');
  return response;
}
