// Takes about 20 s
import { mkdir, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { ManualClock } from '../../core/clock/testing/manual-clock.ts';
import { assign, backends } from '../../model/backend.ts';
import { keys, leaseMs } from '../../model/key.ts';
import { steered, unreachableWhile } from '../../test/kit/ports/steered.ts';
import { describeWorker, leftBehind, openWorkerFixture } from '../testing/fixture.ts';
import { eventually, openTestPlatform, polite } from '../testing/test-platform.ts';

await describeWorker('keys, time limits and folders of a backend that starts', (fixture) => {
  it.concurrent('starts a successor only when the previous holder has ended', async () => {
    const imageDigest = await fixture.platform.images.add(polite);
    const first = await fixture.platform.schedule({ imageDigest, ...(await fixture.platform.claim('shared')) });
    await fixture.platform.until(first, 'ready');
    await fixture.platform.stop(first, 'soft', false);
    const second = await fixture.platform.schedule({
      imageDigest,
      ...(await fixture.platform.claim('shared')),
      waitsFor: first,
    });
    await eventually(async () => (await fixture.platform.get(second)).node);
    const ready = await fixture.platform.until(second, 'ready');
    const endedAt = (await fixture.platform.get(first)).history.at(-1)?.time.getTime() ?? Infinity;
    const startedAt = ready.history.find(({ status }) => status === 'loading')?.time.getTime() ?? 0;
    expect((await fixture.platform.get(first)).history.at(-1)).toMatchObject({ terminationReason: 'external' });
    expect(startedAt).toBeGreaterThanOrEqual(endedAt);
    await fixture.platform.end(second);
  });

  it.concurrent('waits for the previous holder without a limit, if no other process grants leases', async () => {
    const clock = new ManualClock(new Date());
    const options = { clock, settings: { startTimeoutSeconds: leaseMs / 1000 } };
    await using platform = await openTestPlatform();
    platform.useClock(clock);
    const imageDigest = await platform.images.add(polite);
    const first = await platform.schedule({ imageDigest, ...(await platform.claim('k')) }, false);
    await platform.store.update(backends, first, (backend) => assign(backend, 'elsewhere'));
    const second = await platform.schedule({ imageDigest, ...(await platform.claim('k')), waitsFor: first });
    for (let restarts = 0; restarts < 2; restarts += 1) {
      await using _worker = await platform.openWorker(options);
      await eventually(async () => (await platform.get(second)).node);
      // Every backend that may start or wait does so when a later one is ready.
      await platform.until(await platform.schedule({ imageDigest }), 'ready', clock);
      await clock.advance(2 * leaseMs);
      await platform.until(await platform.schedule({ imageDigest }), 'ready', clock);
      expect((await platform.get(second)).status).toBe('scheduled');
    }
    await platform.declareLost(first);
    await using _worker = await platform.openWorker(options);
    await platform.until(second, 'ready', clock);
  });

  it.concurrent('does not start a backend whose key was assigned to another one', async () => {
    const imageDigest = await fixture.platform.images.add(polite);
    const stale = await fixture.platform.claim('contested');
    await fixture.platform.claim('contested');
    const id = await fixture.platform.schedule({ imageDigest, ...stale });
    const ended = await fixture.platform.until(id, 'terminated');
    expect(ended.history.at(-1)).toMatchObject({ terminationReason: 'keyexpired', exitCode: null });
    expect(ended.history.map(({ status }) => status)).not.toContain('waiting');
  });

  it.concurrent('does not start a container before its key is renewed', async () => {
    await using other = await openTestPlatform();
    let isCut = false;
    const onCall = unreachableWhile(({ collection }) => isCut && collection === keys.name);
    const store = steered(other.store, { onCall });
    await using _worker = await other.openWorker({ store });
    const imageDigest = await other.images.add(polite);
    await other.pull(imageDigest);
    isCut = true;
    const id = await other.schedule({ imageDigest, ...(await other.claim('k')) });
    const { time } = (await other.until(id, 'starting')).history.at(-1) ?? {};
    // Several times as long as a start.
    await eventually(async () => (Date.now() - (time?.getTime() ?? 0) > 1_000 ? true : undefined));
    expect(await other.engine.engine.containers.list()).toMatchObject([{ backend: id, phase: 'created' }]);
    isCut = false;
    expect((await other.until(id, 'ready')).status).toBe('ready');
  });

  it.concurrent('ends a backend that never listens', async () => {
    const clock = new ManualClock(new Date());
    await using slow = await openWorkerFixture({ startTimeoutSeconds: 10 }, clock);
    const id = await slow.platform.schedule({
      imageDigest: await slow.platform.images.add('exec sleep 86400'),
    });
    await slow.platform.until(id, 'waiting');
    await clock.advance(8_000);
    expect((await slow.platform.get(id)).status).toBe('waiting');
    const ended = await eventually(async () => {
      await clock.advance(500);
      const backend = await slow.platform.get(id);
      return backend.live ? undefined : backend;
    });
    expect(ended.history.slice(-2)).toMatchObject([
      { status: 'hard-terminating', terminationReason: 'startuptimeout' },
      { status: 'terminated', terminationReason: 'startuptimeout', lastStatus: 'waiting' },
    ]);
  });

  it.concurrent('does not count the time for which the platform was frozen', async () => {
    const clock = new ManualClock(new Date());
    await using slow = await openWorkerFixture({ startTimeoutSeconds: 10 }, clock);
    const id = await slow.platform.schedule({
      imageDigest: await slow.platform.images.add('exec sleep 86400'),
    });
    await slow.platform.until(id, 'waiting');
    await clock.freeze(60_000);
    await clock.advance(5_000);
    expect((await slow.platform.get(id)).status).toBe('waiting');
    await clock.advance(6_000);
    const { history } = await slow.platform.until(id, 'terminated');
    expect(history.at(-1)).toMatchObject({ terminationReason: 'startuptimeout' });
  });

  it.concurrent('does not count the time of a pull, which has a limit of its own', async () => {
    const clock = new ManualClock(new Date());
    await using slow = await openWorkerFixture({ startTimeoutSeconds: 1, pullTimeoutSeconds: 3 }, clock);
    const never = Promise.withResolvers<void>();
    slow.platform.images.holdLayers(never.promise);
    const id = await slow.platform.schedule({ imageDigest: await slow.platform.images.add(polite) });
    await eventually(async () => (slow.platform.images.heldRequests > 0 ? true : undefined));
    await clock.advance(2_500);
    expect((await slow.platform.get(id)).status).toBe('loading');
    await clock.advance(1_000);
    const ended = await slow.platform.until(id, 'terminated');
    never.resolve();
    expect(ended.history.at(-1)).toMatchObject({
      terminationReason: null,
      failure: 'The image could not be pulled within 3 seconds',
    });
  });

  it.concurrent('mounts a folder that outlives the backend, and never one outside the mount folder', async () => {
    await using other = await openWorkerFixture({ mountFolder: join(fixture.platform.folder, 'mounts') });
    const imageDigest = await other.platform.images.add(`cat /data/note > note.txt; echo kept > /data/note; ${polite}`);
    const key = '../../../etc';
    const first = await other.platform.schedule({ imageDigest, mount: true, ...(await other.platform.claim(key)) });
    await other.platform.until(first, 'ready');
    await other.platform.end(first);
    const second = await other.platform.schedule({ imageDigest, mount: true, ...(await other.platform.claim(key)) });
    const { address } = await other.platform.until(second, 'ready');
    expect(await (await fetch(`http://${address?.host}:8080/note.txt`)).text()).toBe('kept\n');
    expect(await readdir(join(fixture.platform.folder, 'mounts'))).toEqual([expect.stringMatching(/^[a-f0-9]{64}$/)]);
  });

  it.concurrent('removes the folder of a backend without a key after its container, and folders that an earlier worker left', async () => {
    const mountFolder = join(fixture.platform.folder, 'own-mounts');
    const left = join(mountFolder, 'backends', 'abcdefghij12');
    await mkdir(join(left, 'nested'), { recursive: true });
    await using other = await openWorkerFixture({ mountFolder });
    expect(await readdir(join(mountFolder, 'backends'))).toEqual([]);
    const imageDigest = await other.platform.images.add(`echo saved > /data/note; ${polite}`);
    const id = await other.platform.schedule({ imageDigest, mount: true });
    await other.platform.until(id, 'ready');
    expect(await readdir(join(mountFolder, 'backends', id))).toEqual(['note']);
    await other.platform.end(id);
    await eventually(async () => ((await readdir(join(mountFolder, 'backends'))).length === 0 ? true : undefined));
    const unstarted = await other.platform.schedule({ imageDigest: `sha256:${'0'.repeat(64)}`, mount: true });
    await other.platform.until(unstarted, 'terminated');
    await eventually(async () => ((await readdir(join(mountFolder, 'backends'))).length === 0 ? true : undefined));
  });

  it.concurrent('refuses a mount if no mount folder is configured', async () => {
    const id = await fixture.platform.schedule({
      imageDigest: await fixture.platform.images.add(polite),
      mount: '../x',
    });
    expect((await fixture.platform.until(id, 'terminated')).history.at(-1)?.failure).toMatch(/mount/);
  });

  it('leaves nothing behind', async () => {
    expect(await leftBehind(fixture.platform)).toEqual([]);
  });
});
