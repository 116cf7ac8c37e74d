// Takes about 25 s
import { describe, expect, it } from 'vitest';
import { backends } from '../../model/backend.ts';
import { eventually, openTestPlatform, polite, stubborn, whyNoTests } from '../testing/test-platform.ts';

const why = await whyNoTests();

describe.skipIf(why !== undefined)(`work that a restarted worker continues ${why ?? ''}`, () => {
  it.concurrent('writes the statuses that an earlier worker could not write', async () => {
    await using platform = await openTestPlatform();
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

  it.concurrent('continues to wait for a port that is not open yet', async () => {
    await using platform = await openTestPlatform();
    const imageDigest = await platform.images.add(
      'while ! test -e /www/go; do sleep 0.02; done; exec httpd -f -p $PORT',
    );
    const first = await platform.openWorker();
    const id = await platform.schedule({ imageDigest });
    await platform.until(id, 'waiting');
    await first[Symbol.asyncDispose]();
    expect((await platform.get(id)).status).toBe('waiting');
    await using _second = await platform.openWorker();
    const execution = await platform.containerOf(id).exec({ Cmd: ['touch', '/www/go'] });
    (await execution.start({})).resume();
    expect((await platform.until(id, 'ready')).address?.host).toMatch(/^10\./);
  });

  it.concurrent('continues a stop in progress', async () => {
    await using platform = await openTestPlatform();
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

  it.concurrent('stops a backend whose key was assigned to another one meanwhile', async () => {
    await using platform = await openTestPlatform();
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

  it.concurrent('does not let a backend finish whose key was assigned to another one, if the end of its lease is unknown', async () => {
    await using platform = await openTestPlatform();
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

  it.concurrent('closes in the middle of any step, and the next worker completes it', async () => {
    await using platform = await openTestPlatform();
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
    expect((await platform.engine.engine.containers.list()).map(({ backend }) => backend).sort()).toEqual(ids.sort());
  });
});
