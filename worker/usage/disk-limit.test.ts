// Runs on every engine
import { expect, it } from 'vitest';
import type { Clock } from '../../core/clock/clock.ts';
import { systemClock } from '../../core/clock/system-clock.ts';
import { describeWorker, fetchText, openWorkerFixture } from '../testing/fixture.ts';

const mebibyte = 1024 * 1024;

/** The clock of the machine, with shorter periods in place of half a minute. */
const fastClock: Clock = {
  now: () => systemClock.now(),
  after: (delayMs, action) => systemClock.after(delayMs, action),
  every: (periodMs, action) => systemClock.every(periodMs === 30_000 ? 200 : periodMs, action),
  sleep: async (delayMs, signal) => await systemClock.sleep(delayMs, signal),
};

/** Serves after it has written a file of this size. */
const writing = (mebibytes: number) => ({
  Cmd: [
    '/bin/sh',
    '-c',
    `head -c ${mebibytes * mebibyte} /dev/zero > large; echo ok > out.txt; exec httpd -f -p $PORT`,
  ],
});

await describeWorker('the disk limit of a container', () => {
  it('stops a backend that exceeds it, and says why', async () => {
    await using fixture = await openWorkerFixture({ diskBytesLimit: 4 * mebibyte }, fastClock);
    const { platform } = fixture;
    const [small, large] = await Promise.all(
      [1, 16].map(async (size) => await platform.images.addConfigured(writing(size))),
    );
    const modest = await platform.schedule({ imageDigest: small! });
    await platform.until(modest, 'ready');
    const greedy = await platform.schedule({ imageDigest: large! });
    const { history } = await platform.until(greedy, 'terminated');
    expect(history.at(-1)).toMatchObject({
      status: 'terminated',
      terminationKind: 'hard',
      terminationReason: 'external',
    });
    expect(JSON.stringify(await platform.get(greedy))).toMatch(
      /Wrote \d+ bytes to the file system of its container, the limit is 4194304/,
    );
    expect(await fetchText(platform, modest, '/out.txt')).toBe('ok\n');
    await platform.end(modest);
  });
});
