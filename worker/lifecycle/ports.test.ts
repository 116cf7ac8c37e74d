// Takes about 15 s
// Runs on every engine
import { expect, it } from 'vitest';
import { ManualClock } from '../../core/clock/testing/manual-clock.ts';
import type { BackendPlan } from '../../model/backend.ts';
import { recheckAfterMs } from './become-ready.ts';
import { firstCheckMs } from '../readiness/reach.ts';
import { describeWorker, fetchText, openWorkerFixture } from '../testing/fixture.ts';
import type { WorkerFixture } from '../testing/fixture.ts';
import { onFirstEngine, oneOnFirstEngine } from '../testing/test-engine.ts';
import { eventually, openTestPlatform, wait } from '../testing/test-platform.ts';

interface Spawned {
  readonly script: string;
  readonly exposed?: readonly number[];
  readonly plan?: Partial<BackendPlan>;
  readonly config?: object;
}

async function spawn(
  { platform }: WorkerFixture,
  { script, exposed = [], plan = {}, config = {} }: Spawned,
): Promise<string> {
  const ExposedPorts = Object.fromEntries(exposed.map((port) => [`${port}/tcp`, {}]));
  const imageDigest = await platform.images.addConfigured({
    Cmd: ['/bin/sh', '-c', `env > /tmp/env.txt; ${script}`],
    ExposedPorts,
    ...config,
  });
  // The plan of tests sets a port.
  return await platform.schedule({ imageDigest, port: undefined, ...plan } as Partial<BackendPlan> & {
    imageDigest: string;
  });
}

await describeWorker('the port of a backend', (fixture) => {
  const ready = async (spawned: Spawned) => {
    const id = await spawn(fixture, spawned);
    const { address } = await fixture.platform.until(id, 'ready');
    const variables = await fetchText(fixture.platform, id, '/env.txt');
    await fixture.platform.end(id);
    return { port: address?.targetPort ?? address?.port, variables: variables.split('\n') };
  };

  it.each<[what: string, spawned: Spawned, port: number, portVariable: number]>([
    ...onFirstEngine<[string, Spawned, number, number]>([
      ['is 8080 without a setting', { script: 'exec httpd -f -h /tmp -p $PORT' }, 8080, 8080],
      [
        'is what the image exposes if it reads PORT',
        { script: 'exec httpd -f -h /tmp -p $PORT', exposed: [80] },
        80,
        80,
      ],
      [
        'is 8080 if the exposed port stays closed',
        { script: 'exec httpd -f -h /tmp -p 8080', exposed: [9000] },
        8080,
        9000,
      ],
      [
        'is the configured one, whatever the image exposes',
        { script: 'exec httpd -f -h /tmp -p $PORT', exposed: [80], plan: { port: 3000 } },
        3000,
        3000,
      ],
      [
        'is the exposed one, also if the program before it listens on 8080 on localhost',
        { script: 'httpd -h /tmp -p 127.0.0.1:8080; sleep 3; exec httpd -f -h /tmp -p 80', exposed: [80] },
        80,
        80,
      ],
      ['is reached on localhost, too', { script: 'exec httpd -f -h /tmp -p 127.0.0.1:$PORT' }, 8080, 8080],
      [
        'is 8080 if the image exposes several',
        { script: 'exec httpd -f -h /tmp -p $PORT', exposed: [80, 443] },
        8080,
        8080,
      ],
    ]),
    [
      'is the only port that the image exposes',
      { script: 'exec httpd -f -h /tmp -p 8123', exposed: [8123] },
      8123,
      8123,
    ],
    [
      'is reached on localhost if the image exposes it, and by the profile "root-less"',
      {
        script: 'exec httpd -f -h /tmp -p 127.0.0.1:80',
        exposed: [80],
        plan: { securityProfile: 'root-less' },
      },
      80,
      80,
    ],
  ])('%s', async (_what, spawned, port, portVariable) => {
    const { port: found, variables } = await ready(spawned);
    expect(found).toBe(port);
    expect(variables).toContain(`PORT=${portVariable}`);
    expect(variables).toContain('HOST=0.0.0.0');
  });

  it.for(oneOnFirstEngine)('is reached on localhost by the next worker', async () => {
    await using platform = await openTestPlatform();
    const script = 'while ! test -e /tmp/go; do sleep 0.02; done; exec httpd -f -h /tmp -p 127.0.0.1:81';
    let id: string;
    {
      await using _first = await platform.openWorker();
      id = await spawn({ platform }, { script, exposed: [81] });
      await platform.until(id, 'waiting');
    }
    await using _second = await platform.openWorker();
    const execution = await platform.containerOf(id).exec({ Cmd: ['touch', '/tmp/go'] });
    (await execution.start({})).resume();
    expect((await platform.until(id, 'ready')).address).toEqual({
      host: expect.any(String) as string,
      port: 61_000,
      targetPort: 81,
    });
  });

  it.for(oneOnFirstEngine)(
    'is free for a program that listens on localhost first, and then on every address',
    async () => {
      const { platform } = fixture;
      const script = `httpd -f -h /tmp -p 127.0.0.1:$PORT & until test -e /tmp/go; do sleep 0.02; done
      kill $!; wait $!; exec httpd -f -h /tmp -p $PORT`;
      const id = await spawn(fixture, { script });
      await platform.until(id, 'ready');
      const execution = await platform.containerOf(id).exec({ Cmd: ['touch', '/tmp/go'] });
      (await execution.start({})).resume();
      const host = (await platform.stateOf(id))?.address;
      await eventually(async () => await fetch(`http://${host}:8080/env.txt`).catch(() => undefined));
      expect(await fetchText(platform, id, '/env.txt')).toContain('PORT=8080');
      await platform.end(id);
    },
  );

  it.for(oneOnFirstEngine)('is reached on localhost if the program goes there when it is ready', async () => {
    const clock = new ManualClock(new Date());
    await using manual = await openWorkerFixture({}, clock);
    const { platform } = manual;
    const script = `httpd -f -h /tmp -p $PORT & until test -e /tmp/go; do sleep 0.02; done
      kill $!; wait $!; exec httpd -f -h /tmp -p 127.0.0.1:$PORT`;
    const id = await spawn(manual, { script });
    await eventually(async () => {
      await clock.advance(10);
      return (await platform.get(id)).status === 'ready' || undefined;
    });
    const execution = await platform.containerOf(id).exec({ Cmd: ['touch', '/tmp/go'] });
    (await execution.start({})).resume();
    const answers = async () => {
      return await fetchText(platform, id, '/env.txt').then(
        () => true,
        () => undefined,
      );
    };
    await eventually(async () => ((await answers()) ? undefined : true));
    await clock.advance(recheckAfterMs);
    // About as fast as the time passes: the worker lists the ports again after seconds, and gives up after a minute.
    const answersAgain = await eventually(async () => {
      await clock.advance(100);
      return await answers();
    });
    expect(answersAgain).toBe(true);
    await platform.end(id);
  });

  it.for(oneOnFirstEngine)('stays closed: the backend says what listens instead', async () => {
    const clock = new ManualClock(new Date());
    await using short = await openWorkerFixture({ startTimeoutSeconds: 6 }, clock);
    const { platform } = short;
    const script = 'httpd -h /tmp -p 127.0.0.1:8889; exec httpd -f -h /tmp -p 8888';
    const id = await spawn(short, { script });
    await platform.until(id, 'waiting');
    // The port that it opens last.
    const url = `http://${(await platform.stateOf(id))?.address}:8888/`;
    await eventually(async () => await fetch(url).catch(() => undefined));
    await clock.advance(firstCheckMs);
    expect(await eventually(async () => (await platform.get(id)).startProblem)).toBe(
      "listens on 8888 and 8889 (on localhost only), expected 8080: set the service's port to the right one, or make the application listen on $PORT",
    );
    const ended = await eventually(async () => {
      await clock.advance(1_000);
      const backend = await platform.get(id);
      return backend.live ? undefined : backend;
    });
    expect(ended.startProblem).toBeUndefined();
    expect(ended.history.at(-1)).toMatchObject({
      terminationReason: 'startuptimeout',
      failure: expect.stringContaining('within 6 seconds: it listens on 8888 and 8889') as string,
    });
  });
});

await describeWorker('the stop signal of an image', (fixture) => {
  it.each([...onFirstEngine([['SIGQUIT', 'QUIT'] as const]), ['SIGRTMIN+3', '37'] as const])(
    '%s ends its container',
    async (StopSignal, trapped) => {
      const { platform } = fixture;
      const script = `trap "exit 5" ${trapped}; trap "exit 6" TERM; httpd -h /tmp -p $PORT; ${wait}`;
      for (const key of [...onFirstEngine([undefined]), `with ${StopSignal}`]) {
        const plan = key === undefined ? {} : await platform.claim(key);
        const id = await spawn(fixture, { script, plan, config: { StopSignal } });
        await platform.until(id, 'ready');
        await platform.stop(id, 'soft');
        expect((await platform.until(id, 'terminated')).history.at(-1)).toMatchObject({ exitCode: 5 });
      }
    },
  );
});
