// Takes about 15 s
// Runs on every engine
import { describe, expect, it } from 'vitest';
import { proxyHeartbeat } from '../../contract/messages.ts';
import { advance, assign, backends } from '../../model/backend.ts';
import { oneOnFirstEngine } from '../testing/test-engine.ts';
import { eventually, openTestPlatform, polite, whyNoTests } from '../testing/test-platform.ts';

const why = await whyNoTests();

describe.skipIf(why !== undefined)(`a restarted worker ${why ?? ''}`, () => {
  it.concurrent('adopts a running backend, which does not notice it', async () => {
    await using platform = await openTestPlatform();
    const imageDigest = await platform.images.add(polite);
    let id: string;
    {
      await using _first = await platform.openWorker();
      id = await platform.schedule({ imageDigest, ...(await platform.claim('k')), maxIdleSeconds: 2 });
      await platform.until(id, 'ready');
    }
    const before = await platform.get(id);
    const [container] = await platform.engine.engine.containers.list();
    await using _second = await platform.openWorker();
    expect(await platform.get(id)).toEqual(before);
    expect(await platform.engine.engine.containers.list()).toEqual([{ ...container, phase: 'running' }]);
    // The backend is swept, and its end is noticed.
    const ended = await eventually(async () => {
      await platform.bus.publish(proxyHeartbeat, { proxy: 'p', nodes: [] });
      const backend = await platform.get(id);
      return backend.live ? undefined : backend;
    });
    expect(ended.history.at(-1)).toMatchObject({ terminationReason: 'swept', exitCode: 0 });
  });

  it.concurrent('records how a backend ended meanwhile', async () => {
    await using platform = await openTestPlatform();
    const imageDigest = await platform.images.add(
      'httpd -p $PORT; while ! test -e /www/go; do sleep 0.02; done; exit 7',
    );
    const first = await platform.openWorker();
    const [exited, vanished] = await Promise.all([
      platform.schedule({ imageDigest }),
      platform.schedule({ imageDigest }),
    ]);
    await Promise.all([platform.until(exited, 'ready'), platform.until(vanished, 'ready')]);
    await first[Symbol.asyncDispose]();
    const execution = await platform.containerOf(exited).exec({ Cmd: ['touch', '/www/go'] });
    (await execution.start({})).resume();
    await platform.containerOf(exited).wait();
    await platform.containerOf(vanished).remove({ force: true });
    await using _second = await platform.openWorker();
    const ended = await platform.until(exited, 'terminated');
    expect(ended.history.at(-1)).toMatchObject({ terminationReason: null, exitCode: 7, lastStatus: 'ready' });
    const lost = await platform.until(vanished, 'terminated');
    expect(lost.history.at(-1)).toMatchObject({ terminationReason: 'lost', exitCode: null });
    await eventually(async () => ((await platform.engine.engine.containers.list()).length === 0 ? true : undefined));
  });

  it.concurrent.for(oneOnFirstEngine)('removes a container without a live backend', async () => {
    await using platform = await openTestPlatform();
    const first = await platform.openWorker();
    const id = await platform.schedule({ imageDigest: await platform.images.add(polite) });
    await platform.until(id, 'ready');
    await first[Symbol.asyncDispose]();
    await platform.declareLost(id);
    await using _second = await platform.openWorker();
    expect(await platform.engine.engine.containers.list()).toEqual([]);
  });

  it.concurrent.for(oneOnFirstEngine)('starts a backend that an earlier worker claimed and did not start', async () => {
    await using platform = await openTestPlatform();
    const imageDigest = await platform.images.add(polite);
    const now = new Date();
    const taken = await platform.schedule({ imageDigest }, false);
    await platform.store.update(backends, taken, (backend) => advance(assign(backend, platform.node), 'loading', now));
    const created = await platform.schedule({ imageDigest }, false);
    await platform.store.update(backends, created, (backend) =>
      advance(assign(backend, platform.node), 'starting', now),
    );
    await platform.pull(imageDigest);
    await platform.leaveCreated(created, imageDigest);
    await using _second = await platform.openWorker();
    expect((await platform.until(taken, 'ready')).status).toBe('ready');
    expect((await platform.until(created, 'ready')).status).toBe('ready');
    expect(await platform.engine.engine.containers.list()).toHaveLength(2);
  });
});
