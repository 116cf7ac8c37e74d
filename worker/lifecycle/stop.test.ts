// Takes about 15 s
// Runs on every engine
import { expect, it } from 'vitest';
import { describeWorker, isRemoved, leftBehind, statusesOf } from '../testing/fixture.ts';
import { oneOnFirstEngine } from '../testing/test-engine.ts';
import { eventually, polite, stubborn } from '../testing/test-platform.ts';

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
    const imageDigest = await fixture.platform.images.add(stubborn);
    const [asked, patient] = await Promise.all([
      fixture.platform.schedule({ imageDigest }),
      fixture.platform.schedule({ imageDigest }),
    ]);
    await Promise.all([fixture.platform.until(asked, 'ready'), fixture.platform.until(patient, 'ready')]);
    await Promise.all([fixture.platform.stop(asked, 'soft'), fixture.platform.stop(patient, 'soft')]);
    await fixture.platform.until(asked, 'terminating');
    await fixture.platform.stop(asked, 'hard');
    await fixture.platform.until(asked, 'terminated');
    await fixture.platform.until(patient, 'terminated');
    for (const id of [asked, patient]) {
      expect((await statusesOf(fixture.platform, id)).slice(5)).toEqual([
        'terminating',
        'hard-terminating',
        'terminated',
      ]);
      expect((await fixture.platform.get(id)).history.at(-1)).toMatchObject({ terminationKind: 'hard', exitCode: 137 });
    }
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
