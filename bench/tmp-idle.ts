import { readFile } from 'node:fs/promises';
import { setTimeout as delay } from 'node:timers/promises';
import { startPlatform } from '../test/kit/platform/platform.ts';
import { residentBytes } from './memory.ts';
const engine = { kind: 'stable', host: process.env['DOCKER_HOST']!, version: '' } as const;
for (const threads of ['1', '0', '1', '0']) {
  await using platform = await startPlatform({
    engine,
    settings: { BERTH_LOG_LEVEL: 'warn', BERTH_PROXY_THREADS: threads },
  });
  await platform.stop();
  await platform.restart();
  await delay(6000);
  console.log(
    threads,
    (await residentBytes(platform.pid)) / 1e6,
    (await readFile(`/proc/${platform.pid}/status`, 'utf8')).match(/Threads.*/)![0],
  );
}
