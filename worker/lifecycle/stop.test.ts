// Takes about 15 s
// Runs on every engine
import { expect, it, vi } from 'vitest';
import { ManualClock } from '../../core/clock/testing/manual-clock.ts';
import { describeWorker, isRemoved, leftBehind, openWorkerFixture, statusesOf } from '../testing/fixture.ts';
import { oneOnFirstEngine } from '../testing/test-engine.ts';
import { eventually, openTestPlatform, polite, stubborn } from '../testing/test-platform.ts';

await describeWorker('stopping a backend', (fixture) => {
  it('ends a backend at once while its image is being pulled', async () => {
    const before = fixture.platform.images.layerRequests;
    const release = Promise.withResolvers<void>();
    fixture.platform.images.holdLayers(release.promise);
    const imageDigest = await fixture.platform.images.add(polite);
    const id = await fixture.platform.schedule({ imageDigest });
    await eventually(async () => (fixture.platform.images.layerRequests > before ? true : undefined));
    await fixture.platform.stop(id, 'soft');
    const ended = await fixture.platform.until(id, 'terminated');
    release.resolve();
    expect(ended.history.map(({ status }) => status)).toEqual(['scheduled', 'loading', 'terminating', 'terminated']);
    expect(ended.history.at(-1)).toMatchObject({ exitCode: null, terminationReason: 'external' });
  });

  it.concurrent('records the exit code of a container that exits by itself', async () => {
    const id = await fixture.platform.schedule({ imageDigest: await fixture.platform.images.add('exit 3') });
    const ended = await fixture.platform.until(id, 'terminated');
    expect(ended.history.at(-1)).toMatchObject({ terminationKind: null, terminationReason: null, exitCode: 3 });
    expect(await fixture.platform.until(id, 'terminated')).toMatchObject({ live: false });
  });

  it.concurrent.for(oneOnFirstEngine)('makes a soft stop hard on request, and after the grace time', async () => {
    await using short = await openWorkerFixture({ stopGraceSeconds: 3 });
    const { platform } = short;
    const imageDigest = await platform.images.add(stubborn);
    const [asked, patient] = await Promise.all([
      platform.schedule({ imageDigest }),
      platform.schedule({ imageDigest }),
    ]);
    await Promise.all([platform.until(asked, 'ready'), platform.until(patient, 'ready')]);
    await Promise.all([platform.stop(asked, 'soft'), platform.stop(patient, 'soft')]);
    await platform.until(asked, 'terminating');
    await platform.stop(asked, 'hard');
    await platform.until(asked, 'terminated');
    await platform.until(patient, 'terminated');
    for (const id of [asked, patient]) {
      expect((await statusesOf(platform, id)).slice(5)).toEqual(['terminating', 'hard-terminating', 'terminated']);
      expect((await platform.get(id)).history.at(-1)).toMatchObject({ terminationKind: 'hard', exitCode: 137 });
    }
  });

  it.concurrent.for(oneOnFirstEngine)('records an exit within the grace time that is noticed after it', async () => {
    await using platform = await openTestPlatform();
    const clock = new ManualClock(new Date());
    platform.useClock(clock);
    // Without events, an exit is noticed by an inspection once a second.
    vi.spyOn(platform.engine.engine, 'followEvents').mockImplementation(async (listener, signal) => {
      listener.onOpen();
      await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()));
    });
    await using _worker = await platform.openWorker({ clock, settings: { stopGraceSeconds: 0.5 } });
    const id = await platform.schedule({ imageDigest: await platform.images.add(polite) });
    await platform.until(id, 'ready', clock);
    const exited = platform.containerOf(id).wait();
    await platform.stop(id, 'soft');
    await exited;
    const ended = await platform.until(id, 'terminated', clock);
    expect(ended.history.at(-1)).toMatchObject({ terminationKind: 'soft', exitCode: 0 });
  });

  it.concurrent('ends a backend in the middle of its start', async () => {
    const id = await fixture.platform.schedule({ imageDigest: await fixture.platform.images.add(polite) });
    await fixture.platform.until(id, 'starting');
    await fixture.platform.stop(id, 'hard');
    const ended = await fixture.platform.until(id, 'terminated');
    expect(ended.history.slice(-2)).toMatchObject([{ status: 'hard-terminating' }, { terminationReason: 'external' }]);
    await eventually(() => isRemoved(fixture.platform, id));
  });

  it.concurrent('ends a backend for memory, even if only a child process was killed', async () => {
    const id = await fixture.platform.schedule({
      imageDigest: await fixture.platform.images.add(
        'httpd -p $PORT; sleep 0.3; (tail /dev/zero); while sleep 1; do :; done',
      ),
      limits: { memoryBytes: 16 * 1024 * 1024 },
    });
    const ended = await fixture.platform.until(id, 'terminated');
    expect(ended.history.at(-1)).toMatchObject({
      terminationKind: null,
      terminationReason: null,
      exitCode: 137,
      failure: 'Used more than its memory limit of 16777216 bytes',
    });
  });

  it.concurrent.for(oneOnFirstEngine)(
    'ends a backend whose CPU time is used up, and records its peak memory usage',
    async () => {
      const id = await fixture.platform.schedule({
        imageDigest: await fixture.platform.images.add('httpd -p $PORT; while :; do :; done'),
        limits: { cpuTimeSeconds: 1, cpuPeriodPercent: 60 },
      });
      const ended = await fixture.platform.until(id, 'terminated');
      expect(ended.history.at(-1)).toMatchObject({ terminationKind: 'hard', terminationReason: 'external' });
      expect(ended.history.at(-1)?.failure).toBe('Used up its 1 seconds of CPU time');
      expect(ended.peakMemoryBytes).toBeGreaterThan(50_000);
    },
  );

  it('leaves nothing behind', async () => {
    expect(await leftBehind(fixture.platform)).toEqual([]);
  });
});
