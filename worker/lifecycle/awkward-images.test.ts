// Takes about 15 s
// Runs on every engine
/** Unusual images: each backend either becomes reachable, or reports in a sentence what to change. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { whyNotStarted } from '../../model/start-failure.ts';
import { fetchText, openWorkerFixture } from '../testing/fixture.ts';
import type { OwnedWorkerFixture } from '../testing/fixture.ts';
import { onFirstEngine } from '../testing/test-engine.ts';
import { whyNoTests } from '../testing/test-platform.ts';

const why = await whyNoTests();

type Config = Readonly<Record<string, unknown>>;

const sh = (script: string): Config => ({ Cmd: ['/bin/sh', '-c', script] });
const serve = sh('exec httpd -f -p 8080');

describe.skipIf(why !== undefined)(`awkward images on a real engine ${why ?? ''}`, () => {
  let fixture: OwnedWorkerFixture;
  beforeAll(async () => void (fixture = await openWorkerFixture()));
  afterAll(async () => await fixture[Symbol.asyncDispose]());

  async function schedule(config: Config, image: Config = {}): Promise<string> {
    const { platform } = fixture;
    const imageDigest = await platform.images.addConfigured(config, image);
    // The plan of tests sets a port.
    return await platform.schedule({ imageDigest, port: undefined } as unknown as { imageDigest: string });
  }

  it.each<[string, Config, RegExp | string]>([
    ...onFirstEngine<[string, Config, string]>([
      [
        'ends at once',
        sh('exit 0'),
        'The container exited with code 0 before it was ready: its command must run a server until it is stopped.',
      ],
      ['fails at once', sh('exit 3'), 'The container exited with code 3 before it was ready.'],
    ]),
    ['has no command', { Cmd: [] }, 'The image names no program to run: add CMD or ENTRYPOINT to its Dockerfile'],
    [
      'names a program that it lacks',
      { Cmd: ['/serve'] },
      /127 before it was ready: a program was not found|no such file/,
    ],
    ['names a file that is no program', { Cmd: ['/www'] }, /12[67] before it was ready: a program|permission denied/],
    ['names a user that it lacks', { ...serve, User: 'ada' }, /unable to find user ada/],
    [
      'has a working directory that is a file',
      { ...serve, WorkingDir: '/bin/busybox' },
      /\/bin\/busybox(?: is)? not a directory/i,
    ],
  ])('an image that %s ends its backend with a sentence', async (_what, config, words) => {
    const ended = await fixture.platform.until(await schedule(config), 'terminated');
    expect(whyNotStarted(ended.history.at(-1))).toMatch(words);
  });

  it('an image for other processors names them', async () => {
    const foreign = process.arch === 'arm64' ? 'amd64' : 'arm64';
    const own = process.arch === 'arm64' ? 'arm64' : 'amd64';
    const ended = await fixture.platform.until(await schedule(sh('exit 1'), { architecture: foreign }), 'terminated');
    expect(whyNotStarted(ended.history.at(-1))).toBe(
      `The container exited with code 1. Its image is for ${foreign}, and this machine is ${own}: build it with "--platform linux/${own}"`,
    );
  });

  it.each(
    onFirstEngine<[string, Config, string]>([
      ['UDP alone', sh('nc -u -l -p 8080 & exec sleep 86400'), 'listens on no TCP port, expected 8080'],
      [
        'another port',
        sh('exec httpd -f -p 3000'),
        "listens on 3000, expected 8080: set the service's port to 3000, or make the application listen on $PORT",
      ],
      [
        'two other ports',
        sh('httpd -p 3000; exec httpd -f -p 9229'),
        "listens on 3000 and 9229, expected 8080: set the service's port to the right one, or make the application listen on $PORT",
      ],
    ]),
  )('an image that listens on %s waits, and its backend says why', async (_what, config, words) => {
    const { platform } = fixture;
    const id = await schedule(config);
    // It may open its ports one after another.
    await expect.poll(async () => (await platform.get(id)).startProblem).toBe(words);
    await platform.end(id);
  });

  it('shared memory is large enough for a browser', async () => {
    const { platform } = fixture;
    const script = 'df -k /dev/shm > out.txt; exec httpd -f -p $PORT';
    const imageDigest = await platform.images.addConfigured(sh(script));
    const id = await platform.schedule({ imageDigest, limits: { memoryBytes: 512 * 1024 * 1024 } });
    await platform.until(id, 'ready');
    expect(await fetchText(platform, id, '/out.txt')).toMatch(/^shm +262144 /m);
    await platform.end(id);
  });
});
