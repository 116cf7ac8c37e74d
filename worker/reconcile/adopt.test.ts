// Takes about 40 s
// Runs on every engine
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { proxyHeartbeat } from '../../contract/messages.ts';
import { advance, assign, backends } from '../../model/backend.ts';
import { eventually, openTestPlatform, polite, stubborn, whyNoTests } from '../testing/test-platform.ts';
import type { TestPlatform } from '../testing/test-platform.ts';

const why = await whyNoTests();

describe.skipIf(why !== undefined)(`a restarted worker ${why ?? ''}`, () => {
  let platform: TestPlatform;
  beforeEach(async () => {
    platform = await openTestPlatform();
  });
  afterEach(async () => {
    await platform?.[Symbol.asyncDispose]();
  });

  const containers = () => platform.engine.engine.containers.list();
  const containerOf = (id: string) => platform.containerOf(id);

  it('adopts a running backend, which does not notice it', async () => {
    const imageDigest = await platform.images.add(polite);
    let id: string;
    {
      await using _first = await platform.openWorker();
      id = await platform.schedule({ imageDigest, ...(await platform.claim('k')), maxIdleSeconds: 2 });
      await platform.until(id, 'ready');
    }
    const before = await platform.get(id);
    const [container] = await containers();
    await using _second = await platform.openWorker();
    expect(await platform.get(id)).toEqual(before);
    expect(await containers()).toEqual([{ ...container, phase: 'running' }]);
    // The backend is swept, and its end is noticed.
    const ended = await eventually(async () => {
      await platform.bus.publish(proxyHeartbeat, { proxy: 'p', nodes: [] });
      const backend = await platform.get(id);
      return backend.live ? undefined : backend;
    });
    expect(ended.history.at(-1)).toMatchObject({ terminationReason: 'swept', exitCode: 0 });
  });

  it('writes what an earlier worker could not write any more', async () => {
    const first = await platform.openWorker();
    const id = await platform.schedule({ imageDigest: await platform.images.add(polite) });
    const { address } = await platform.until(id, 'ready');
    await first[Symbol.asyncDispose]();
    await platform.store.update(backends, id, ({ address: _address, readyAt: _readyAt, ...backend }) => ({
      ...backend,
      status: 'loading' as const,
      history: backend.history.slice(0, 2),
    }));
    await using _second = await platform.openWorker();
    const ready = await platform.until(id, 'ready');
    expect(ready.history.map(({ status }) => status)).toEqual(['scheduled', 'loading', 'starting', 'waiting', 'ready']);
    expect(ready.address).toEqual(address);
  });

  it('records how a backend ended meanwhile', async () => {
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
    const execution = await containerOf(exited).exec({ Cmd: ['touch', '/www/go'] });
    (await execution.start({})).resume();
    await containerOf(exited).wait();
    await containerOf(vanished).remove({ force: true });
    await using _second = await platform.openWorker();
    const ended = await platform.until(exited, 'terminated');
    expect(ended.history.at(-1)).toMatchObject({ terminationReason: null, exitCode: 7, lastStatus: 'ready' });
    const lost = await platform.until(vanished, 'terminated');
    expect(lost.history.at(-1)).toMatchObject({ terminationReason: 'lost', exitCode: null });
    await eventually(async () => ((await containers()).length === 0 ? true : undefined));
  });

  it('removes a container without a live backend', async () => {
    const first = await platform.openWorker();
    const id = await platform.schedule({ imageDigest: await platform.images.add(polite) });
    await platform.until(id, 'ready');
    await first[Symbol.asyncDispose]();
    await platform.declareLost(id);
    await using _second = await platform.openWorker();
    expect(await containers()).toEqual([]);
  });

  it('starts a backend that an earlier worker claimed and did not start', async () => {
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
    expect(await containers()).toHaveLength(2);
  });

  it('continues to wait for a port that is not open yet', async () => {
    const imageDigest = await platform.images.add(
      'while ! test -e /www/go; do sleep 0.02; done; exec httpd -f -p $PORT',
    );
    const first = await platform.openWorker();
    const id = await platform.schedule({ imageDigest });
    await platform.until(id, 'waiting');
    await first[Symbol.asyncDispose]();
    expect((await platform.get(id)).status).toBe('waiting');
    await using _second = await platform.openWorker();
    const execution = await containerOf(id).exec({ Cmd: ['touch', '/www/go'] });
    (await execution.start({})).resume();
    expect((await platform.until(id, 'ready')).address?.host).toMatch(/^10\./);
  });

  it('continues a stop in progress', async () => {
    const first = await platform.openWorker({ settings: { stopGraceSeconds: 60 } });
    const id = await platform.schedule({
      imageDigest: await platform.images.add(stubborn),
    });
    await platform.until(id, 'ready');
    await platform.stop(id, 'soft');
    await platform.until(id, 'terminating');
    await first[Symbol.asyncDispose]();
    expect((await platform.get(id)).status).toBe('terminating');
    await using _second = await platform.openWorker({ settings: { stopGraceSeconds: 1 } });
    const ended = await platform.until(id, 'terminated');
    expect(ended.history.slice(5).map(({ status }) => status)).toEqual([
      'terminating',
      'hard-terminating',
      'terminated',
    ]);
  });

  it('stops a backend whose key was assigned to another one meanwhile', async () => {
    const first = await platform.openWorker();
    const id = await platform.schedule({
      imageDigest: await platform.images.add(polite),
      ...(await platform.claim('k')),
    });
    await platform.until(id, 'ready');
    await first[Symbol.asyncDispose]();
    await platform.claim('k');
    await using _second = await platform.openWorker();
    const ended = await platform.until(id, 'terminated');
    expect(ended.history.at(-1)).toMatchObject({ terminationReason: 'keyexpired', terminationKind: 'hard' });
  });

  it('does not let a backend finish whose key was assigned to another one, if the end of its lease is unknown', async () => {
    const first = await platform.openWorker({ settings: { stopGraceSeconds: 60 } });
    const id = await platform.schedule({
      imageDigest: await platform.images.add(stubborn),
      ...(await platform.claim('k')),
    });
    await platform.until(id, 'ready');
    await platform.stop(id, 'soft');
    await platform.until(id, 'terminating');
    await first[Symbol.asyncDispose]();
    await platform.claim('k');
    await using _second = await platform.openWorker({ settings: { stopGraceSeconds: 60 } });
    const ended = await platform.until(id, 'terminated');
    expect(ended.history.at(-1)).toMatchObject({ terminationKind: 'hard', terminationReason: 'external' });
  });

  it('closes in the middle of any step, and the next worker completes it', async () => {
    const imageDigest = await platform.images.add(polite);
    const ids: string[] = [];
    for (const moment of ['scheduled', 'loading', 'starting', 'waiting', 'ready'] as const) {
      const worker = await platform.openWorker();
      const id = await platform.schedule({ imageDigest });
      ids.push(id);
      await eventually(async () => (await platform.get(id)).node);
      await platform.until(id, moment);
      await worker[Symbol.asyncDispose]();
    }
    await using _last = await platform.openWorker();
    for (const id of ids) expect((await platform.until(id, 'ready')).status).toBe('ready');
    expect((await containers()).map(({ backend }) => backend).sort()).toEqual(ids.sort());
  });
});
