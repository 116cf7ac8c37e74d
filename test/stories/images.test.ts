// Takes about 40 s
/** What an image defines for its containers: user, folders, volumes, entrypoint, platform. Each image is built from scratch. */
import { readFile } from 'node:fs/promises';
import { arch } from 'node:os';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { ConnectResponse } from '../../contract/connect.ts';
import { api } from '../kit/platform/api-client.ts';
import { staticBusybox } from '../kit/packages/docker-packages.ts';
import { imageOf, indexOf, layoutOf, ociIndexType, tarOf } from '../kit/registry/archives.ts';
import type { TestBlob, TestEntry } from '../kit/registry/archives.ts';
import { Fixture, onAllEngines } from './fixture.ts';

const thisArchitecture = arch() === 'arm64' ? 'arm64' : 'amd64';

const applets = ['sh', 'httpd', 'id', 'pwd', 'cat', 'ls', 'sleep', 'touch', 'echo'];

/** Writes what the program sees into a file, and serves the folder of that file. */
const report = '{ id; pwd; ls -ld /state/*; echo "args: $*"; } > /tmp/seen.txt 2>&1; exec httpd -f -p $PORT -h /tmp';

interface Packed {
  readonly blobs: readonly TestBlob[];
  readonly manifest: TestBlob;
}

onAllEngines((setting) => {
  let fixture: Fixture;
  /** A system with a shell, and a single program without one. */
  let base: Buffer;
  let single: Buffer;

  beforeAll(async () => {
    const busybox = await staticBusybox();
    if (busybox === undefined) throw new Error('Install busybox-static: the test images contain it');
    const program = await readFile(busybox);
    const folder = (name: string, more: Partial<TestEntry> = {}): TestEntry => ({
      name,
      type: 'directory',
      mode: 0o755,
      ...more,
    });
    base = await tarOf([
      folder('bin/'),
      { name: 'bin/busybox', mode: 0o755, content: program },
      ...applets.map((name): TestEntry => ({ name: `bin/${name}`, type: 'symlink', linkname: 'busybox' })),
      folder('etc/'),
      { name: 'etc/passwd', content: 'root:x:0:0::/:/bin/sh\nada:x:1234:1234::/home/ada:/bin/sh\n' },
      { name: 'etc/group', content: 'root:x:0:\nada:x:1234:\nstaff:x:50:ada\n' },
      folder('home/'),
      folder('home/ada/', { uid: 1234, gid: 1234, mode: 0o700 }),
      folder('state/', { uid: 1234, gid: 50 }),
      { name: 'state/first', uid: 1234, gid: 50, content: 'from the image' },
      folder('tmp/', { mode: 0o1777 }),
      { name: 'entry', mode: 0o755, content: `#!/bin/sh\n${report}\n` },
    ]);
    single = await tarOf([
      { name: 'httpd', mode: 0o755, content: program },
      folder('www/'),
      { name: 'www/index.html', content: 'no shell here' },
    ]);
    fixture = await Fixture.open(setting, { BERTH_STOP_GRACE_SECONDS: '10' });
  });
  afterAll(async () => await fixture[Symbol.asyncDispose]());

  function packed(layer: Buffer, config: object, more: object = {}): Packed {
    const {
      layers,
      config: blob,
      manifest,
    } = imageOf([layer], {
      architecture: thisArchitecture,
      config: { Env: ['PATH=/bin'], ...config },
      ...more,
    });
    return { blobs: [...layers, blob, manifest], manifest };
  }

  async function upload(service: string, layout: readonly TestEntry[]): Promise<void> {
    const body = new FormData();
    body.append('archive', new Blob([await tarOf(layout)]), 'image.tar');
    const headers = { authorization: `Bearer ${fixture.platform.token}` };
    const path = `/v2/service/${fixture.platform.account}/${service}/images`;
    const answer = await fetch(`${fixture.platform.apiUrl}${path}`, { method: 'POST', headers, body });
    expect([answer.status, answer.ok ? '' : await answer.text()]).toEqual([201, '']);
  }

  async function set(service: string, settings: object): Promise<void> {
    const path = `/v2/service/${fixture.platform.account}/${service}/settings`;
    expect((await api(fixture.platform, path, { method: 'POST', body: JSON.stringify(settings) })).status).toBe(200);
  }

  /** Pushes an image and connects with a key, so that Berth's init runs the program if processes share a store. */
  async function run(service: string, layer: Buffer, config: object): Promise<ConnectResponse> {
    const { blobs, manifest } = packed(layer, config);
    await upload(service, layoutOf(blobs, [{ blob: manifest }]));
    return await fixture.connectReady(service, { key: 'only' });
  }

  const read = async ({ url }: ConnectResponse, path: string) => await (await fetch(`${url}${path}`)).text();

  test.each([
    ['exec', { Entrypoint: ['/entry', 'one'], Cmd: ['two words'] }, 'args: one two words'],
    ['relative', { Entrypoint: ['./entry'], WorkingDir: '/' }, 'args: \n'],
    ['shell', { Entrypoint: ['/bin/sh', '-c', report] }, 'args: \n'],
    ['command', { Cmd: ['/entry', 'alone'] }, 'args: alone'],
  ])('an entrypoint in the form "%s" gets its arguments', async (form, config, words) => {
    const session = await run(`entrypoint-${form}`, base, config);
    expect(await read(session, 'seen.txt')).toContain(words);
    await fixture.terminate(session, true);
  });

  test.each([
    ['by-name', 'ada', 'uid=1234(ada) gid=1234(ada) groups=50(staff)'],
    ['and-group', 'ada:staff', 'uid=1234(ada) gid=50(staff)'],
    ['unknown', '4321:8765', 'uid=4321 gid=8765'],
  ])('the user %s runs the program, in a working directory that the engine creates', async (service, User, words) => {
    const session = await run(`user-${service}`, base, { Cmd: ['/entry'], User, WorkingDir: '/made/for/it' });
    const seen = await read(session, 'seen.txt');
    expect(seen).toContain(words);
    expect(seen).toContain('/made/for/it');
    await fixture.terminate(session, true);
  });

  test('a volume has the files of the image, belongs to one container, and is removed with it', async () => {
    const format = '{{range .Mounts}}{{if eq .Type "volume"}}{{.Name}} {{end}}{{end}}';
    const volumesOf = async (session: ConnectResponse) =>
      (await fixture.docker('inspect', '--format', format, await fixture.containerOf(session)))
        .split(' ')
        .filter(Boolean);
    const script = `touch /state/mine || exit 9; ${report}`;
    const config = { Cmd: ['/bin/sh', '-c', script], User: 'ada', Volumes: { '/state': {} } };
    const first = await run('volume', base, config);
    const second = await fixture.connectReady('volume');
    for (const session of [first, second]) {
      expect(await read(session, 'seen.txt')).toMatch(/ada +staff .* \/state\/first\n.* \/state\/mine\n/);
    }
    const made = [...(await volumesOf(first)), ...(await volumesOf(second))];
    expect(new Set(made).size).toBeGreaterThanOrEqual(2);
    for (const session of [first, second]) {
      await fixture.terminate(session, true);
      await fixture.statusesUntil(session, 'terminated');
    }
    const all = async () => (await fixture.docker('volume', 'ls', '--quiet')).split('\n');
    const left = async () => (await all()).filter((name) => made.includes(name));
    await expect.poll(left, { interval: 250 }).toEqual([]);
  });

  test.each([
    ['as-root', {}, { Entrypoint: ['/httpd', '-f', '-h', '/www', '-p', '8080'] }],
    ['as-user', {}, { Entrypoint: ['/httpd', '-f', '-h', '/www', '-p', '8080'], User: '1000' }],
    ['on-localhost', {}, { Entrypoint: ['/httpd', '-f', '-h', '/www', '-p', '127.0.0.1:8080'], User: '1000' }],
    ['exposed', {}, { Entrypoint: ['/httpd', '-f', '-h', '/www', '-p', '80'], ExposedPorts: { '80/tcp': {} } }],
    ['root-less', { security_profile: 'root-less' }, { Entrypoint: ['/httpd', '-f', '-h', '/www', '-p', '8080'] }],
    ['no-capability', { security_profile: 'none' }, { Entrypoint: ['/httpd', '-f', '-h', '/www', '-p', '8080'] }],
  ])('an image of one program without a shell works: %s', async (name, settings, config) => {
    const service = `single-${name}`;
    const { blobs, manifest } = packed(single, config);
    await upload(service, layoutOf(blobs, [{ blob: manifest }]));
    await set(service, settings);
    const session = await fixture.connectReady(service, { key: 'only' });
    expect(await read(session, '')).toBe('no shell here');
    await fixture.terminate(session, true);
  });

  test('a soft stop sends the stop signal of the image', async () => {
    const script = 'trap "echo quit; exit 0" QUIT; httpd -p $PORT -h /tmp; sleep 86400 & wait';
    const session = await run('signal', base, { Cmd: ['/bin/sh', '-c', script], StopSignal: 'SIGQUIT' });
    await fixture.terminate(session);
    const statuses = await fixture.statusesUntil(session, 'terminated');
    expect(statuses.map(({ status }) => status)).not.toContain('hard-terminating');
    expect(statuses.at(-1)).toMatchObject({ termination_kind: 'soft', exit_error: false });
  });

  test('the image of this platform is run from an index for several platforms', async () => {
    const own = packed(base, { Cmd: ['/entry', 'of this platform'] });
    const other = packed(single, { Cmd: ['/elsewhere'] }, { architecture: 's390x' });
    const index = indexOf([other.manifest, own.manifest], { architectures: ['s390x', thisArchitecture] });
    await upload('index', layoutOf([...other.blobs, ...own.blobs, index], [{ blob: index, mediaType: ociIndexType }]));
    const session = await fixture.connectReady('index');
    expect(await read(session, 'seen.txt')).toContain('args: of this platform');
    expect((await fixture.backend(session)).image_digest).toBe(index.digest);
    await fixture.terminate(session, true);
  });

  test.each([
    ['missing', { Cmd: ['/no/such/program'] }, 'exited with code 127 before it was ready: a program was not found'],
    ['exits-at-once', { Cmd: ['/bin/sh'] }, 'its command must run a server'],
    ['without-command', {}, 'The image names no program to run: add CMD or ENTRYPOINT to its Dockerfile'],
    ['unknown-user', { Cmd: ['/entry'], User: 'nobody-here' }, 'nobody-here'],
  ])('a backend whose image cannot run reports why: %s', async (name, config, words) => {
    const { blobs, manifest } = packed(base, config);
    await upload(`broken-${name}`, layoutOf(blobs, [{ blob: manifest }]));
    const session = await fixture.connect(`broken-${name}`);
    expect((await fixture.statusesUntil(session, 'terminated')).at(-1)?.problem).toContain(words);
  });
});
