// Takes about 20 s
// Runs on every engine
import { uptime } from 'node:os';
import { text } from 'node:stream/consumers';
import { expect, it } from 'vitest';
import { pullProgressed } from '../../contract/messages.ts';
import type { PullProgress } from '../../contract/messages.ts';
import { describeWorker, fetchText, leftBehind } from '../testing/fixture.ts';
import { oneOnFirstEngine } from '../testing/test-engine.ts';
import { eventually, polite } from '../testing/test-platform.ts';

await describeWorker('the start of a backend', (fixture) => {
  it.for(oneOnFirstEngine)('sets the variables of the platform over those of the user', async () => {
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

  it('starts a container without access to other containers', async () => {
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
      // The engine omits steps of a short download, so the size may stay unknown.
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
      failure: expect.stringMatching(/^The image could not be pulled: .*manifest/) as string,
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

  it.for(oneOnFirstEngine)('is ready when its port opens, and not before', async () => {
    const imageDigest = await fixture.platform.images.add(
      'sleep 0.5; cat /proc/uptime > up.txt; exec httpd -f -p $PORT',
    );
    const id = await fixture.platform.schedule({ imageDigest });
    const ready = await fixture.platform.until(id, 'ready');
    const upAt = Number((await fetchText(fixture.platform, id, '/up.txt')).split(' ')[0]);
    // In this order, so that a pause between the two readings makes it later and not earlier.
    const secondsSince = (Date.now() - (ready.readyAt?.getTime() ?? 0)) / 1000;
    const readyUptime = uptime() - secondsSince;
    // Both are truncated to hundredths of a second.
    expect(readyUptime).toBeGreaterThan(upAt - 0.02);
    await fixture.platform.end(id);
  });

  it('leaves nothing behind', async () => {
    expect(await leftBehind(fixture.platform)).toEqual([]);
  });
});
