import { uptime } from 'node:os';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { backendTouched, connectionsOpen } from '../contract/messages.ts';
import type { Clock } from '../core/clock/clock.ts';
import { ManualClock } from '../core/clock/manual-clock.ts';
import { systemClock } from '../core/clock/system-clock.ts';
import { backends } from '../model/backend.ts';
import { keys } from '../model/key.ts';
import type { WorkerSettings } from './settings.ts';
import { cutStore } from './testing/cut-store.ts';
import { eventually, openTestPlatform, polite, whyNoTests } from './testing/test-platform.ts';
import type { TestPlatform } from './testing/test-platform.ts';
import type { Worker } from './worker.ts';

const why = await whyNoTests();

/** Serves its folder, and does not listen when told to end. */
const stubborn = 'trap "" TERM; httpd -p $PORT; while sleep 0.05; do :; done';

describe.skipIf(why !== undefined)(`a worker on a real engine ${why ?? ''}`, () => {
  let platform: TestPlatform;
  let worker: Worker;
  beforeAll(async () => {
    platform = await openTestPlatform();
    worker = await platform.openWorker();
  });
  afterAll(async () => {
    await worker?.[Symbol.asyncDispose]();
    await platform?.[Symbol.asyncDispose]();
  });

  const containerOf = (id: string) => platform.engine.docker.getContainer(`berth-${id}`);
  const statusesOf = async (id: string) => (await platform.get(id)).history.map(({ status }) => status);
  const isRemoved = async (id: string) =>
    await containerOf(id)
      .inspect()
      .then(
        () => undefined,
        () => true,
      );
  async function fetchText(id: string, path: string): Promise<string> {
    const { address } = await platform.get(id);
    const response = await fetch(`http://${address?.host}:${address?.port}${path}`);
    return await response.text();
  }

  it('takes a backend from scheduled to ready, and ends it when asked', async () => {
    const id = await platform.schedule({ imageDigest: platform.images.add(polite) });
    await platform.until(id, 'ready');
    expect(await statusesOf(id)).toEqual(['scheduled', 'loading', 'starting', 'waiting', 'ready']);
    await platform.stop(id, 'soft');
    const ended = await platform.until(id, 'terminated');
    expect(ended.history.slice(5).map(({ status }) => status)).toEqual(['terminating', 'terminated']);
    expect(ended.history.at(-1)).toMatchObject({
      exitCode: 0,
      terminationKind: 'soft',
      terminationReason: 'external',
      lastStatus: 'ready',
    });
    expect(ended).not.toHaveProperty('env');
    await eventually(() => isRemoved(id));
    expect(platform.images.subjects).toEqual(new Set([`node:${platform.node}`]));
  });

  it('sets the variables of the platform over those of the user', async () => {
    const imageDigest = platform.images.add(`env > env.txt; ${polite}`);
    const env = { COLOUR: 'blue = "1"', PORT: '1', SESSION_BACKEND_ID: 'forged' };
    const key = 'room 1/../ü';
    const id = await platform.schedule({ imageDigest, env, port: 8123, ...(await platform.claim(key)) });
    const { fencingToken } = await platform.until(id, 'ready');
    const lines = (await fetchText(id, '/env.txt')).split('\n');
    expect(lines).toEqual(
      expect.arrayContaining([
        'COLOUR=blue = "1"',
        'PORT=8123',
        `SESSION_BACKEND_ID=${id}`,
        `SESSION_BACKEND_KEY=${key}`,
        `SESSION_BACKEND_FENCING_TOKEN=${fencingToken}`,
      ]),
    );
    await platform.end(id);
  });

  it('leaves a container no privileges, and no way to a neighbour', async () => {
    const imageDigest = platform.images.add(`cat /proc/self/status > status.txt; ${polite}`);
    const [one, other] = await Promise.all([platform.schedule({ imageDigest }), platform.schedule({ imageDigest })]);
    const neighbour = (await platform.until(other, 'ready')).address;
    await platform.until(one, 'ready');
    const status = await fetchText(one, '/status.txt');
    expect(status).toMatch(/^CapEff:\s+0+$/m);
    expect(status).toMatch(/^CapBnd:\s+0+$/m);
    expect(status).toMatch(/^NoNewPrivs:\s+1$/m);
    const info = await containerOf(one).inspect();
    expect(info.HostConfig).toMatchObject({ PidsLimit: 64, Init: true, Privileged: false });
    expect(info.HostConfig.RestartPolicy?.Name).toMatch(/^(no)?$/);
    expect(Object.values(info.NetworkSettings.Ports).flat()).toEqual([]);
    const execution = await containerOf(one).exec({
      Cmd: ['sh', '-c', `nc -w 1 ${neighbour?.host} ${neighbour?.port} </dev/null`],
    });
    (await execution.start({})).resume();
    const code = await eventually(async () => (await execution.inspect()).ExitCode ?? undefined);
    expect(code).not.toBe(0);
    await Promise.all([platform.end(one), platform.end(other)]);
  });

  it('gives no address twice in a row', async () => {
    const imageDigest = platform.images.add(polite);
    const hosts = new Set<string | undefined>();
    for (let round = 0; round < 3; round += 1) {
      const id = await platform.schedule({ imageDigest });
      hosts.add((await platform.until(id, 'ready')).address?.host);
      await platform.end(id);
    }
    expect(hosts.size).toBe(3);
  });

  it('pulls an image once for all backends that wait for it', async () => {
    const before = platform.images.layerRequests;
    const release = Promise.withResolvers<void>();
    platform.images.holdLayers(release.promise);
    const imageDigest = platform.images.add(polite);
    const ids = await Promise.all([platform.schedule({ imageDigest }), platform.schedule({ imageDigest })]);
    await eventually(async () => (platform.images.layerRequests > before ? true : undefined));
    await Promise.all(ids.map((id) => platform.until(id, 'loading')));
    release.resolve();
    await Promise.all(ids.map((id) => platform.until(id, 'ready')));
    expect(platform.images.layerRequests).toBe(before + 1);
    await Promise.all(ids.map((id) => platform.end(id)));
  });

  it('ends a backend at once whose image is being pulled', async () => {
    const before = platform.images.layerRequests;
    const release = Promise.withResolvers<void>();
    platform.images.holdLayers(release.promise);
    const imageDigest = platform.images.add(polite);
    const id = await platform.schedule({ imageDigest });
    await eventually(async () => (platform.images.layerRequests > before ? true : undefined));
    await platform.stop(id, 'soft');
    const ended = await platform.until(id, 'terminated');
    release.resolve();
    expect(ended.history.map(({ status }) => status)).toEqual(['scheduled', 'loading', 'terminating', 'terminated']);
    expect(ended.history.at(-1)).toMatchObject({ exitCode: null, terminationReason: 'external' });
  });

  it('says why an image could not be fetched', async () => {
    const id = await platform.schedule({ imageDigest: `sha256:${'0'.repeat(64)}` });
    const ended = await platform.until(id, 'terminated');
    expect(ended.history.at(-1)).toMatchObject({
      terminationKind: null,
      terminationReason: null,
      exitCode: null,
      lastStatus: 'loading',
      failure: expect.stringMatching(/^The image could not be fetched: .*manifest/) as string,
    });
  });

  it('says why a container did not start', async () => {
    const imageDigest = platform.images.addConfigured({ Cmd: ['/bin/true'], User: 'nobody-of-this-name' });
    const id = await platform.schedule({ imageDigest });
    const ended = await platform.until(id, 'terminated');
    expect(ended.history.at(-1)).toMatchObject({
      terminationKind: null,
      terminationReason: null,
      lastStatus: 'starting',
      failure: expect.stringMatching(/nobody-of-this-name/) as string,
    });
  });

  it('tells the exit code of a container that ends by itself', async () => {
    const id = await platform.schedule({ imageDigest: platform.images.add('exit 3') });
    const ended = await platform.until(id, 'terminated');
    expect(ended.history.at(-1)).toMatchObject({ terminationKind: null, terminationReason: null, exitCode: 3 });
    expect(await platform.until(id, 'terminated')).toMatchObject({ live: false });
  });

  it('is ready when its port opens, and not before', async () => {
    const imageDigest = platform.images.add('sleep 0.5; cat /proc/uptime > up.txt; exec httpd -f -p $PORT');
    const id = await platform.schedule({ imageDigest });
    const ready = await platform.until(id, 'ready');
    const upAt = Number((await fetchText(id, '/up.txt')).split(' ')[0]);
    const readyUptime = uptime() - (Date.now() - (ready.readyAt?.getTime() ?? 0)) / 1000;
    // Both are told in hundredths of a second, cut off.
    expect(readyUptime).toBeGreaterThan(upAt - 0.02);
    await platform.end(id);
  });

  it('makes a soft stop hard when it is asked to, and after the grace time by itself', async () => {
    const imageDigest = platform.images.add(stubborn);
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
      expect((await statusesOf(id)).slice(5)).toEqual(['terminating', 'hard-terminating', 'terminated']);
      expect((await platform.get(id)).history.at(-1)).toMatchObject({ terminationKind: 'hard', exitCode: 137 });
    }
  });

  it('carries out a stop that nobody told it of', async () => {
    const id = await platform.schedule({ imageDigest: platform.images.add(polite) });
    await platform.until(id, 'ready');
    await platform.stop(id, 'soft', false);
    expect((await platform.until(id, 'terminated')).history.at(-1)).toMatchObject({ terminationKind: 'soft' });
  });

  it('ends a backend in the middle of its start', async () => {
    const id = await platform.schedule({ imageDigest: platform.images.add(polite) });
    await platform.until(id, 'starting');
    await platform.stop(id, 'hard');
    const ended = await platform.until(id, 'terminated');
    expect(ended.history.slice(-2)).toMatchObject([{ status: 'hard-terminating' }, { terminationReason: 'external' }]);
    await eventually(() => isRemoved(id));
  });

  it('runs many at once, each at an address of its own', async () => {
    const imageDigest = platform.images.add(polite);
    const ids = await Promise.all(Array.from({ length: 12 }, () => platform.schedule({ imageDigest })));
    const all = await Promise.all(ids.map((id) => platform.until(id, 'ready')));
    expect(new Set(all.map(({ address }) => address?.host)).size).toBe(12);
    await Promise.all(ids.map((id) => platform.end(id)));
  });

  it('takes as many as it has room for, and the next when one has ended', async () => {
    await using full = await openOther({ maxBackends: 2 });
    const imageDigest = full.platform.images.add(polite);
    const ids = await Promise.all([0, 1, 2, 3].map((i) => full.platform.schedule({ imageDigest }, i < 3)));
    const taken = async () => {
      const all = await Promise.all(ids.map((id) => full.platform.get(id)));
      return all.filter(({ node, live }) => node !== undefined && live).map(({ id }) => id);
    };
    await eventually(async () => (await taken()).length === 2 || undefined);
    for (let ended = 0; ended < ids.length; ended += 1) {
      const [first = '', second] = await taken();
      await Promise.all([first, ...(second ? [second] : [])].map((id) => full.platform.until(id, 'ready')));
      expect((await taken()).length).toBe(Math.min(2, ids.length - ended));
      await full.platform.end(first);
      await eventually(async () => (await taken()).length >= Math.min(2, ids.length - ended - 1) || undefined);
    }
  });

  it('takes a backend that nobody told it of', async () => {
    const id = await platform.schedule({ imageDigest: platform.images.add(polite) }, false);
    expect((await platform.until(id, 'ready')).status).toBe('ready');
    await platform.end(id);
  });

  it('stops its copy of a backend that was ended by somebody else', async () => {
    const id = await platform.schedule({ imageDigest: platform.images.add(polite) });
    await platform.until(id, 'ready');
    await platform.declareLost(id);
    await eventually(() => isRemoved(id));
    expect((await statusesOf(id)).slice(5)).toEqual(['terminated']);
  });

  it('starts a successor only when its predecessor has ended', async () => {
    const imageDigest = platform.images.add(polite);
    const first = await platform.schedule({ imageDigest, ...(await platform.claim('shared')) });
    await platform.until(first, 'ready');
    await platform.stop(first, 'soft', false);
    const second = await platform.schedule({ imageDigest, ...(await platform.claim('shared')), waitsFor: first });
    await eventually(async () => (await platform.get(second)).node);
    const ready = await platform.until(second, 'ready');
    const endedAt = (await platform.get(first)).history.at(-1)?.time.getTime() ?? Infinity;
    const startedAt = ready.history.find(({ status }) => status === 'loading')?.time.getTime() ?? 0;
    expect((await platform.get(first)).history.at(-1)).toMatchObject({ terminationReason: 'external' });
    expect(startedAt).toBeGreaterThanOrEqual(endedAt);
    await platform.end(second);
  });

  it('does not start a backend whose key was given to another one', async () => {
    const imageDigest = platform.images.add(polite);
    const stale = await platform.claim('contested');
    await platform.claim('contested');
    const id = await platform.schedule({ imageDigest, ...stale });
    const ended = await platform.until(id, 'terminated');
    expect(ended.history.at(-1)).toMatchObject({ terminationReason: 'keyexpired', exitCode: null });
    expect(ended.history.map(({ status }) => status)).not.toContain('waiting');
  });

  it('does not start a container before its key is renewed', async () => {
    await using other = await openTestPlatform();
    const { store, cut } = cutStore(other.store);
    await using _worker = await other.openWorker({ store });
    const imageDigest = other.images.add(polite);
    await other.pull(imageDigest);
    cut.collection = keys.name;
    cut.isOff = true;
    const id = await other.schedule({ imageDigest, ...(await other.claim('k')) });
    const { time } = (await other.until(id, 'starting')).history.at(-1) ?? {};
    // Several times as long as a start takes.
    await eventually(async () => (Date.now() - (time?.getTime() ?? 0) > 1_000 ? true : undefined));
    expect(await other.engine.engine.containers.list()).toMatchObject([{ backend: id, phase: 'created' }]);
    cut.isOff = false;
    expect((await other.until(id, 'ready')).status).toBe('ready');
  });

  it('ends a backend that never listens', async () => {
    const clock = new ManualClock(new Date());
    await using slow = await openOther({ startTimeoutSeconds: 10 }, clock);
    const id = await slow.platform.schedule({ imageDigest: slow.platform.images.add('while sleep 0.05; do :; done') });
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

  it('does not count the time that a pull takes, and gives it a limit of its own', async () => {
    await using slow = await openOther({ startTimeoutSeconds: 1, pullTimeoutSeconds: 3 });
    const never = Promise.withResolvers<void>();
    slow.platform.images.holdLayers(never.promise);
    const id = await slow.platform.schedule({ imageDigest: slow.platform.images.add(polite) });
    const ended = await slow.platform.until(id, 'terminated');
    never.resolve();
    expect(ended.history.at(-1)).toMatchObject({
      terminationReason: null,
      failure: 'The image could not be fetched within 3 seconds',
    });
  });

  it('ends a backend for memory, even if only a child of it was killed', async () => {
    const id = await platform.schedule({
      imageDigest: platform.images.add('httpd -p $PORT; sleep 0.3; (tail /dev/zero); while sleep 1; do :; done'),
      limits: { memoryBytes: 16 * 1024 * 1024 },
    });
    const ended = await platform.until(id, 'terminated');
    expect(ended.history.at(-1)).toMatchObject({
      terminationKind: null,
      terminationReason: null,
      exitCode: 137,
      failure: 'Used more than its memory limit of 16777216 bytes',
    });
  });

  it('ends a backend whose CPU time is used up, and notes its peak of memory', async () => {
    const id = await platform.schedule({
      imageDigest: platform.images.add('httpd -p $PORT; while :; do :; done'),
      limits: { cpuTimeSeconds: 1, cpuPeriodPercent: 60 },
    });
    const ended = await platform.until(id, 'terminated');
    expect(ended.history.at(-1)).toMatchObject({ terminationKind: 'hard', terminationReason: 'external' });
    expect(ended.history.at(-1)?.failure).toBe('Used up its 1 seconds of CPU time');
    expect(ended.peakMemoryBytes).toBeGreaterThan(50_000);
  });

  it('mounts a folder that outlives the backend, and never leaves the folder of mounts', async () => {
    await using other = await openOther({ mountFolder: join(platform.folder, 'mounts') });
    const imageDigest = other.platform.images.add(`cat /data/note > note.txt; echo kept > /data/note; ${polite}`);
    const key = '../../../etc';
    const first = await other.platform.schedule({ imageDigest, mount: true, ...(await other.platform.claim(key)) });
    await other.platform.until(first, 'ready');
    await other.platform.end(first);
    const second = await other.platform.schedule({ imageDigest, mount: true, ...(await other.platform.claim(key)) });
    const { address } = await other.platform.until(second, 'ready');
    expect(await (await fetch(`http://${address?.host}:8080/note.txt`)).text()).toBe('kept\n');
    expect(await readdir(join(platform.folder, 'mounts'))).toEqual([expect.stringMatching(/^[a-f0-9]{64}$/)]);
  });

  it('refuses a mount where none is configured', async () => {
    const id = await platform.schedule({ imageDigest: platform.images.add(polite), mount: '../x' });
    expect((await platform.until(id, 'terminated')).history.at(-1)?.failure).toMatch(/mount/);
  });

  it('sweeps an idle backend, but none that is connected, just touched, or unheard of', async () => {
    const imageDigest = platform.images.add(polite);
    const [idle, connected, touched] = await Promise.all(
      [0, 1, 2].map(() => platform.schedule({ imageDigest, maxIdleSeconds: 2 })),
    );
    if (!idle || !connected || !touched) throw new Error('unreachable');
    await Promise.all([idle, connected, touched].map((id) => platform.until(id, 'ready')));
    const readyAt = (await platform.get(idle)).readyAt?.getTime() ?? 0;
    // Nobody is heard yet: nobody is swept, however long that lasts.
    await eventually(async () => (Date.now() - readyAt > 3_500 ? true : undefined));
    expect((await platform.get(idle)).status).toBe('ready');
    const heardAt = Date.now();
    const beat = () => platform.bus.publish(connectionsOpen, { proxy: 'p', open: { [connected]: 1, elsewhere: 1 } });
    await beat();
    const ended = await eventually(async () => {
      await beat();
      await platform.bus.publish(backendTouched, { backend: touched });
      const backend = await platform.get(idle);
      return backend.live ? undefined : backend;
    });
    const sweptAt = ended.history.find(({ status }) => status === 'terminating')?.time.getTime() ?? 0;
    expect(ended.history.at(-1)).toMatchObject({ terminationReason: 'swept', terminationKind: 'soft' });
    expect(sweptAt - heardAt).toBeGreaterThanOrEqual(2_000);
    expect(sweptAt - heardAt).toBeLessThan(3_500);
    expect((await platform.get(connected)).status).toBe('ready');
    expect((await platform.get(touched)).status).toBe('ready');
    await Promise.all([platform.end(connected), platform.end(touched)]);
  });

  it('sweeps a backend at its lifetime limit', async () => {
    const id = await platform.schedule({ imageDigest: platform.images.add(polite), lifetimeLimitSeconds: 1 });
    const ended = await platform.until(id, 'terminated');
    expect(ended.history.at(-1)).toMatchObject({ terminationReason: 'swept', lastStatus: 'ready' });
  });

  it('makes its network anew when somebody has taken it', async () => {
    await using other = await openOther({});
    const { engine, docker } = other.platform.engine;
    await docker.getNetwork(engine.network.name).remove();
    const id = await other.platform.schedule({ imageDigest: other.platform.images.add(polite) });
    expect((await other.platform.until(id, 'ready')).status).toBe('ready');
  });

  it('takes another address when somebody has the one it chose', async () => {
    await using other = await openOther({});
    const { engine, docker } = other.platform.engine;
    const before = engine.network.takeAddress().split('.').map(Number);
    const next = [...before.slice(0, 3), (before[3] ?? 0) + 1].join('.');
    const imageDigest = other.platform.images.add(polite);
    const first = await other.platform.schedule({ imageDigest });
    expect((await other.platform.until(first, 'ready')).address?.host).toBe(next);
    // Behind the worker's back, at the address that comes next.
    const squatted = [...before.slice(0, 3), (before[3] ?? 0) + 2].join('.');
    const squatter = await docker.createContainer({
      Image: (await docker.getContainer(`berth-${first}`).inspect()).Image,
      Env: ['PORT=8080'],
      Labels: { 'berth.node': other.platform.node },
      HostConfig: { NetworkMode: engine.network.name, Init: true },
      NetworkingConfig: { EndpointsConfig: { [engine.network.name]: { IPAMConfig: { IPv4Address: squatted } } } },
    });
    await squatter.start();
    const second = await other.platform.schedule({ imageDigest });
    const host = (await other.platform.until(second, 'ready')).address?.host;
    expect(host).toBe([...before.slice(0, 3), (before[3] ?? 0) + 3].join('.'));
  });

  it('counts what it does', async () => {
    const text = await platform.metrics.metrics();
    expect(text).toMatch(/^berth_spawn_duration_seconds_count\{result="ready"\} [1-9]/m);
    expect(text).toMatch(/^berth_spawn_duration_seconds_count\{result="failed"\} [1-9]/m);
    expect(text).toMatch(/^berth_terminations_total\{reason="swept"\} [1-9]/m);
    expect(text).toMatch(/^berth_backends\{status="ready"\} 0$/m);
    expect(text).toMatch(/^berth_docker_errors_total\{op="image-pull"\} [1-9]/m);
  });

  it('leaves nothing behind', async () => {
    await eventually(async () => ((await platform.engine.engine.containers.list()).length === 0 ? true : undefined));
    const left = await platform.store.find(backends, { index: 'byNode', equals: { node: platform.node, live: true } });
    expect(left).toEqual([]);
  });
});

/** A platform with a worker of other settings. */
async function openOther(
  settings: Partial<WorkerSettings>,
  clock: Clock = systemClock,
): Promise<AsyncDisposable & { platform: TestPlatform }> {
  await using parts = new AsyncDisposableStack();
  const platform = parts.use(await openTestPlatform());
  parts.use(await platform.openWorker({ settings, clock }));
  const owned = parts.move();
  return { platform, [Symbol.asyncDispose]: () => owned.disposeAsync() };
}
