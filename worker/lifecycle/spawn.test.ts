// Takes about 30 s
// Runs on every engine
import { uptime } from 'node:os';
import { mkdir, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { expect, it } from 'vitest';
import { pullProgressed } from '../../contract/messages.ts';
import type { PullProgress } from '../../contract/messages.ts';
import { ManualClock } from '../../core/clock/manual-clock.ts';
import { keys } from '../../model/key.ts';
import { steered, unreachableWhile } from '../../test/kit/ports/steered.ts';
import { describeWorker, fetchText, leftBehind, openWorkerFixture } from '../testing/fixture.ts';
import { eventually, openTestPlatform, polite } from '../testing/test-platform.ts';

await describeWorker('the start of a backend', (fixture) => {
  it('sets the variables of the platform over those of the user', async () => {
    const imageDigest = await fixture.platform.images.add(`env > env.txt; ${polite}`);
    const env = { COLOUR: 'blue = "1"', PORT: '1', SESSION_BACKEND_ID: 'forged' };
    const key = 'room 1/../ü';
    const id = await fixture.platform.schedule({
      imageDigest,
      env,
      port: 8123,
      ...(await fixture.platform.claim(key)),
    });
    const { fencingToken } = await fixture.platform.until(id, 'ready');
    const lines = (await fetchText(fixture.platform, id, '/env.txt')).split('\n');
    expect(lines).toEqual(
      expect.arrayContaining([
        'COLOUR=blue = "1"',
        'PORT=8123',
        `SESSION_BACKEND_ID=${id}`,
        `SESSION_BACKEND_KEY=${key}`,
        `SESSION_BACKEND_FENCING_TOKEN=${fencingToken}`,
      ]),
    );
    await fixture.platform.end(id);
  });

  it('gives a container no access to other containers', async () => {
    const imageDigest = await fixture.platform.images.add(polite);
    const [one, other] = await Promise.all([
      fixture.platform.schedule({ imageDigest }),
      fixture.platform.schedule({ imageDigest }),
    ]);
    const neighbour = (await fixture.platform.until(other, 'ready')).address;
    await fixture.platform.until(one, 'ready');
    const info = await fixture.platform.containerOf(one).inspect();
    expect(info.HostConfig).toMatchObject({ PidsLimit: 64, Init: true, Privileged: false });
    expect(info.HostConfig.RestartPolicy?.Name).toMatch(/^(no)?$/);
    expect(Object.values(info.NetworkSettings.Ports).flat()).toEqual([]);
    const execution = await fixture.platform.containerOf(one).exec({
      Cmd: ['sh', '-c', `nc -w 1 ${neighbour?.host} ${neighbour?.port} </dev/null`],
    });
    (await execution.start({})).resume();
    const code = await eventually(async () => (await execution.inspect()).ExitCode ?? undefined);
    expect(code).not.toBe(0);
    await Promise.all([fixture.platform.end(one), fixture.platform.end(other)]);
  });

  it('reveals no IDs of other backends to a container, by any name in the DNS of Docker', async () => {
    const imageDigest = await fixture.platform.images.add(polite);
    const [one, other] = await Promise.all([
      fixture.platform.schedule({ imageDigest }),
      fixture.platform.schedule({ imageDigest }),
    ]);
    const neighbour = (await fixture.platform.until(other, 'ready')).address;
    await fixture.platform.until(one, 'ready');
    const execution = await fixture.platform
      .containerOf(one)
      .exec({ Cmd: ['nslookup', neighbour?.host ?? ''], AttachStdout: true, AttachStderr: true, Tty: true });
    const output = await text(await execution.start({ Tty: true }));
    // Docker's DNS does return a name.
    expect(output).toContain('name = berth-');
    expect(output).not.toContain(other);
    const { Name, Config, NetworkSettings } = await fixture.platform.containerOf(other).inspect();
    expect(JSON.stringify([Name, Config.Hostname, Config.Domainname, NetworkSettings.Networks])).not.toContain(other);
    await Promise.all([fixture.platform.end(one), fixture.platform.end(other)]);
  });

  it('pulls an image once for all backends that wait for it', async () => {
    const before = fixture.platform.images.layerRequests;
    const release = Promise.withResolvers<void>();
    fixture.platform.images.holdLayers(release.promise);
    const imageDigest = await fixture.platform.images.add(polite);
    const progress = new Map<string, PullProgress>();
    await using _progress = await fixture.platform.bus.subscribe(pullProgressed, (message) => {
      progress.set(message.backend, message.progress);
    });
    const ids = await Promise.all([
      fixture.platform.schedule({ imageDigest }),
      fixture.platform.schedule({ imageDigest }),
    ]);
    // The engine reports layers before it has them.
    await eventually(async () => (ids.every((id) => progress.has(id)) ? true : undefined));
    release.resolve();
    await Promise.all(ids.map((id) => fixture.platform.until(id, 'ready')));
    expect(fixture.platform.images.layerRequests).toBe(before + 1);
    for (const id of ids) {
      const { layers, layersDone, downloadedBytes, totalBytes } = progress.get(id) ?? {};
      expect([layersDone, downloadedBytes]).toEqual([layers, totalBytes]);
      // The engine leaves steps of a short download out, so the size may stay unknown.
      expect(layers).toBeGreaterThan(0);
    }
    await Promise.all(ids.map((id) => fixture.platform.end(id)));
  });

  it('reports why an image could not be pulled', async () => {
    const id = await fixture.platform.schedule({ imageDigest: `sha256:${'0'.repeat(64)}` });
    const ended = await fixture.platform.until(id, 'terminated');
    expect(ended.history.at(-1)).toMatchObject({
      terminationKind: null,
      terminationReason: null,
      exitCode: null,
      lastStatus: 'loading',
      failure: expect.stringMatching(/^The image could not be fetched: .*manifest/) as string,
    });
  });

  it('reports why a container did not start', async () => {
    const imageDigest = await fixture.platform.images.addConfigured({
      Cmd: ['/bin/true'],
      User: 'nobody-of-this-name',
    });
    const id = await fixture.platform.schedule({ imageDigest });
    const ended = await fixture.platform.until(id, 'terminated');
    expect(ended.history.at(-1)).toMatchObject({
      terminationKind: null,
      terminationReason: null,
      lastStatus: 'starting',
      failure: expect.stringMatching(/nobody-of-this-name/) as string,
    });
  });

  it('is ready when its port opens, and not before', async () => {
    const imageDigest = await fixture.platform.images.add(
      'sleep 0.5; cat /proc/uptime > up.txt; exec httpd -f -p $PORT',
    );
    const id = await fixture.platform.schedule({ imageDigest });
    const ready = await fixture.platform.until(id, 'ready');
    const upAt = Number((await fetchText(fixture.platform, id, '/up.txt')).split(' ')[0]);
    const readyUptime = uptime() - (Date.now() - (ready.readyAt?.getTime() ?? 0)) / 1000;
    // Both are truncated to hundredths of a second.
    expect(readyUptime).toBeGreaterThan(upAt - 0.02);
    await fixture.platform.end(id);
  });

  it('starts a successor only when the previous holder has ended', async () => {
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

  it('does not start a backend whose key was assigned to another one', async () => {
    const imageDigest = await fixture.platform.images.add(polite);
    const stale = await fixture.platform.claim('contested');
    await fixture.platform.claim('contested');
    const id = await fixture.platform.schedule({ imageDigest, ...stale });
    const ended = await fixture.platform.until(id, 'terminated');
    expect(ended.history.at(-1)).toMatchObject({ terminationReason: 'keyexpired', exitCode: null });
    expect(ended.history.map(({ status }) => status)).not.toContain('waiting');
  });

  it('does not start a container before its key is renewed', async () => {
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

  it('ends a backend that never listens', async () => {
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

  it('does not count the time for which the platform was frozen', async () => {
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

  it('does not count the time of a pull, which has a limit of its own', async () => {
    await using slow = await openWorkerFixture({ startTimeoutSeconds: 1, pullTimeoutSeconds: 3 });
    const never = Promise.withResolvers<void>();
    slow.platform.images.holdLayers(never.promise);
    const id = await slow.platform.schedule({ imageDigest: await slow.platform.images.add(polite) });
    const ended = await slow.platform.until(id, 'terminated');
    never.resolve();
    expect(ended.history.at(-1)).toMatchObject({
      terminationReason: null,
      failure: 'The image could not be fetched within 3 seconds',
    });
  });

  it('mounts a folder that outlives the backend, and never one outside the mount folder', async () => {
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

  it('removes the folder of a backend without a key after its container, and folders that an earlier worker left', async () => {
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

  it('refuses a mount if no mount folder is configured', async () => {
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
