// Takes about 15 s
import { expect, it } from 'vitest';
import { describeWorker, isRemoved, leftBehind, openWorkerFixture, statusesOf } from './testing/fixture.ts';
import { eventually, polite } from './testing/test-platform.ts';

await describeWorker('a worker', (fixture) => {
  it('brings a backend from scheduled to ready, and ends it on request', async () => {
    const id = await fixture.platform.schedule({ imageDigest: await fixture.platform.images.add(polite) });
    await fixture.platform.until(id, 'ready');
    expect(await statusesOf(fixture.platform, id)).toEqual(['scheduled', 'loading', 'starting', 'waiting', 'ready']);
    await fixture.platform.stop(id, 'soft');
    const ended = await fixture.platform.until(id, 'terminated');
    expect(ended.history.slice(5).map(({ status }) => status)).toEqual(['terminating', 'terminated']);
    expect(ended.history.at(-1)).toMatchObject({
      exitCode: 0,
      terminationKind: 'soft',
      terminationReason: 'external',
      lastStatus: 'ready',
    });
    expect(ended).not.toHaveProperty('env');
    await eventually(() => isRemoved(fixture.platform, id));
    expect(fixture.platform.images.subjects).toEqual(new Set([`node:${fixture.platform.node}`]));
  });

  it('claims as many backends as it has capacity for, and the next when one has ended', async () => {
    await using full = await openWorkerFixture({ maxBackends: 2 });
    const imageDigest = await full.platform.images.add(polite);
    const ids = await Promise.all([0, 1, 2, 3].map((i) => full.platform.schedule({ imageDigest }, i < 3)));
    const claimed = async () => {
      const all = await Promise.all(ids.map((id) => full.platform.get(id)));
      return all.filter(({ node, live }) => node !== undefined && live).map(({ id }) => id);
    };
    await eventually(async () => (await claimed()).length === 2 || undefined);
    for (let ended = 0; ended < ids.length; ended += 1) {
      const [first = '', second] = await claimed();
      await Promise.all([first, ...(second ? [second] : [])].map((id) => full.platform.until(id, 'ready')));
      expect((await claimed()).length).toBe(Math.min(2, ids.length - ended));
      await full.platform.end(first);
      await eventually(async () => (await claimed()).length >= Math.min(2, ids.length - ended - 1) || undefined);
    }
  });

  it('claims a backend without a job', async () => {
    const id = await fixture.platform.schedule({ imageDigest: await fixture.platform.images.add(polite) }, false);
    expect((await fixture.platform.until(id, 'ready')).status).toBe('ready');
    await fixture.platform.end(id);
  });

  it('exports metrics of its work', async () => {
    const failing = await fixture.platform.schedule({ imageDigest: `sha256:${'0'.repeat(64)}` });
    const swept = await fixture.platform.schedule({
      imageDigest: await fixture.platform.images.add(polite),
      lifetimeLimitSeconds: 1,
    });
    await Promise.all([failing, swept].map((id) => fixture.platform.until(id, 'terminated')));
    const patterns = [
      /^berth_spawn_duration_seconds_count\{result="ready"\} [1-9]/m,
      /^berth_spawn_duration_seconds_count\{result="failed"\} [1-9]/m,
      /^berth_terminations_total\{reason="swept"\} [1-9]/m,
      /^berth_backends\{status="ready"\} 0$/m,
      /^berth_docker_errors_total\{op="image-pull"\} [1-9]/m,
    ];
    // A worker counts an end after it has written it.
    for (const pattern of patterns) await expect.poll(() => fixture.platform.metrics.metrics()).toMatch(pattern);
  });

  it('leaves nothing behind', async () => {
    expect(await leftBehind(fixture.platform)).toEqual([]);
  });
});
