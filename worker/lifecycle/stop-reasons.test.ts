// Takes about 20 s
import { expect, it } from 'vitest';
import { connectionsOf } from '../../contract/messages.ts';
import { backends, touch } from '../../model/backend.ts';
import { describeWorker, isRemoved, leftBehind, statusesOf } from '../testing/fixture.ts';
import { eventually, polite } from '../testing/test-platform.ts';

await describeWorker('the reasons for which a backend is stopped', (fixture) => {
  it.concurrent('carries out a stop without a job', async () => {
    const id = await fixture.platform.schedule({ imageDigest: await fixture.platform.images.add(polite) });
    await fixture.platform.until(id, 'ready');
    await fixture.platform.stop(id, 'soft', false);
    expect((await fixture.platform.until(id, 'terminated')).history.at(-1)).toMatchObject({ terminationKind: 'soft' });
  });

  it.concurrent('stops a backend that another component has ended', async () => {
    const id = await fixture.platform.schedule({ imageDigest: await fixture.platform.images.add(polite) });
    await fixture.platform.until(id, 'ready');
    await fixture.platform.declareLost(id);
    await eventually(() => isRemoved(fixture.platform, id));
    expect((await statusesOf(fixture.platform, id)).slice(5)).toEqual(['terminated']);
  });

  it.concurrent('sweeps a backend at its lifetime limit', async () => {
    const id = await fixture.platform.schedule({
      imageDigest: await fixture.platform.images.add(polite),
      lifetimeLimitSeconds: 1,
    });
    const ended = await fixture.platform.until(id, 'terminated');
    expect(ended.history.at(-1)).toMatchObject({ terminationReason: 'swept', lastStatus: 'ready' });
  });

  it('sweeps an idle backend, but none that is connected or just touched, and none while no proxy reports', async () => {
    const imageDigest = await fixture.platform.images.add(polite);
    const [idle, connected, touched] = await Promise.all(
      [0, 1, 2].map(() => fixture.platform.schedule({ imageDigest, maxIdleSeconds: 2 })),
    );
    if (!idle || !connected || !touched) throw new Error('unreachable');
    await Promise.all([idle, connected, touched].map((id) => fixture.platform.until(id, 'ready')));
    const readyAt = (await fixture.platform.get(idle)).readyAt?.getTime() ?? 0;
    // No proxy has reported yet: no backend is swept, however long that lasts.
    await eventually(async () => (Date.now() - readyAt > 3_500 ? true : undefined));
    expect((await fixture.platform.get(idle)).status).toBe('ready');
    const heardAt = Date.now();
    const { node = '' } = await fixture.platform.get(connected);
    const report = { proxy: 'p', isWhole: true, open: { [connected]: 1, elsewhere: 1 } };
    const beat = () => fixture.platform.bus.publish(connectionsOf(node), report);
    await beat();
    const ended = await eventually(async () => {
      await beat();
      await fixture.platform.store.update(backends, touched, (backend) => touch(backend, new Date()));
      const backend = await fixture.platform.get(idle);
      return backend.live ? undefined : backend;
    });
    const sweptAt = ended.history.find(({ status }) => status === 'terminating')?.time.getTime() ?? 0;
    expect(ended.history.at(-1)).toMatchObject({ terminationReason: 'swept', terminationKind: 'soft' });
    expect(sweptAt - heardAt).toBeGreaterThanOrEqual(2_000);
    expect((await fixture.platform.get(connected)).status).toBe('ready');
    expect((await fixture.platform.get(touched)).status).toBe('ready');
    await Promise.all([fixture.platform.end(connected), fixture.platform.end(touched)]);
  });

  it('leaves nothing behind', async () => {
    expect(await leftBehind(fixture.platform)).toEqual([]);
  });
});
