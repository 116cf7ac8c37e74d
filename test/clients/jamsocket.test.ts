// Takes about 40 s
/**
 * Every command of the published `jamsocket` command line, against a platform on a real engine, except `dev`, which runs its own
 * platform from an image of Docker Hub.
 */
import { randomBytes } from 'node:crypto';
import { copyFile, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { codeOfPage } from '../cli/log-in-page.ts';
import { findProgram, runCommand, tryCommand } from '../../setup/command.ts';
import type { LayerEntry } from '../../setup/image.ts';
import { testEngines } from '../kit/engines/engines.ts';
import { gitRepository } from '../kit/machine/git-repository.ts';
import { storeTestImage } from '../kit/engines/stored-images.ts';
import { staticBusybox } from '../kit/packages/docker-packages.ts';
import { jamsocketProgram } from '../kit/packages/jamsocket.ts';
import { api, connect as connectTo, eventStream } from '../kit/platform/api-client.ts';
import { startPlatform } from '../kit/platform/platform.ts';
import type { TestPlatform } from '../kit/platform/platform.ts';
import { Jamsocket } from './jamsocket-cli.ts';

const program = (await findProgram('git')) && (await jamsocketProgram());
const [engine] = testEngines();

const admin = { user_email: 'ada@example.com', password: 'correct horse battery' };

const script = "echo serving $WORD; trap 'exit 0' TERM; /bin/busybox httpd -f -p $PORT -h /www & wait";
const command = ['/bin/busybox', 'sh', '-c', script];
const page = 'a whiteboard';

const dockerfile = `FROM scratch
COPY busybox /bin/busybox
COPY www /www
CMD ${JSON.stringify(command)}
`;

const commitMessage = `Draw "circles" — with $money`;

describe.skipIf(!program || !engine)('with the jamsocket command line', () => {
  let platform: TestPlatform;
  let folder: string;
  /** The git repository with the Dockerfile. */
  let source: string;
  let commit = '';
  let jamsocket: Jamsocket;

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'berth-jamsocket-'));
    const passwordFile = join(folder, 'password');
    await writeFile(passwordFile, admin.password, { mode: 0o600 });
    const settings = { BERTH_ADMIN_EMAIL: admin.user_email, BERTH_ADMIN_PASSWORD_FILE: passwordFile };
    platform = await startPlatform({ engine, settings });
    jamsocket = await homeFor('home');
    source = join(folder, 'whiteboard');
    commit = await makeRepository(source, jamsocket.env);
    await jamsocket.run(['login', '--token', platform.token]);
  });
  afterAll(async () => {
    const images = await docker('images', '--quiet', '--filter', `label=hash=${commit}`);
    if (images !== '') await tryCommand('docker', ['rmi', '--force', ...new Set(images.split('\n'))], at());
    await rm(folder, { recursive: true, force: true });
    await platform[Symbol.asyncDispose]();
  });

  async function homeFor(name: string): Promise<Jamsocket> {
    const home = join(folder, name);
    await mkdir(home);
    return new Jamsocket({ program: program ?? '', home, apiUrl: platform.apiUrl, dockerHost: engine?.host ?? '' });
  }

  const at = () => ({ env: { DOCKER_HOST: engine?.host } });

  async function docker(...args: string[]): Promise<string> {
    return (await runCommand('docker', args, at())).trim();
  }

  /** Builds the image in the repository and pushes it. Returns its digest. */
  async function push(service: string): Promise<string> {
    await jamsocket.run(['push', service, '-f', 'Dockerfile', '-c', '.', '--include-git-commit'], source);
    return await pushedImage(service, 'latest');
  }

  async function pushedImage(service: string, tag: string): Promise<string> {
    const rows = (await jamsocket.run(['images', service])).split('\n').map((row) => row.trim().split(/\s+/));
    return rows.find((row) => row[1] === tag)?.[0] ?? '';
  }

  /** Creates a service with an image like the one of the repository, and returns its digest. */
  async function deploy(service: string, tag?: string): Promise<string> {
    const layer: LayerEntry[] = [
      { path: '/bin/busybox', file: (await staticBusybox()) ?? '', mode: 0o755 },
      { path: '/www/index.html', text: page },
    ];
    const image = { tag: `berth-test/${service}`, layers: [layer], config: { Cmd: command } };
    return await storeTestImage(platform, { image, service, ...(tag !== undefined && { tag }) });
  }

  /** Connects, and returns the fields that the program prints. */
  async function connect(...args: string[]): Promise<Readonly<Record<string, string>>> {
    const output = await jamsocket.run(['connect', ...args]);
    return Object.fromEntries(
      Array.from(output.matchAll(/^(\w+(?: \w+)?): +(\S+)$/gm), ([, name, value]) => [name, value]),
    );
  }

  async function waitUntilReady(backend: string): Promise<void> {
    for await (const { data } of eventStream(platform, `/v2/backend/${backend}/status/stream`)) {
      if (JSON.parse(data).status === 'ready') return;
    }
    throw new Error('The backend did not become ready');
  }

  test('login with a token, and logout', async () => {
    const own = await homeFor('with-token');
    expect(await own.run(['login', '--token', platform.token])).toContain('Logged in using API token as "home"');
    expect(await own.run(['login'])).toContain('You are already logged in as account home');
    await own.run(['service', 'create', 'by-token']);
    expect((await own.run(['service', 'list'])).split('\n')).toContain('by-token');
    expect(await own.run(['logout'])).toContain('Logged out');
    await expect(own.run(['service', 'list'])).rejects.toThrow('No user credentials found');
    await expect(own.run(['login', '--token', `${platform.token}x`])).rejects.toThrow('Unauthorized');
  });

  test('login in a browser, with the code of the page, and logout', async () => {
    const own = await homeFor('with-browser');
    const login = own.start(['login']);
    const path = await login.output(/https:\/\/app\.\S+?(\/cli-login\/\S+)/);
    const pageUrl = `${platform.apiUrl}${path}`;
    const first = await fetch(pageUrl, { redirect: 'manual' });
    expect([first.status, first.headers.get('location')]).toEqual([303, `/login?next=${encodeURIComponent(path)}`]);
    const { code, text } = await codeOfPage(pageUrl, admin);
    expect(text).toContain('jamsocket-cli/');
    await login.output(/(Paste the .* here)/);
    login.type(`${code}\n`);
    expect(await login.succeeded()).toContain(`You're logged in as ${platform.account}`);
    const { user_session: session } = JSON.parse(
      await readFile(join(folder, 'with-browser/.jamsocket/config.json'), 'utf8'),
    );
    expect(session).toMatchObject({ user_email: admin.user_email, user_is_admin: true, selected_account: 'home' });
    expect(await own.run(['login', 'home'])).toContain("You're logged in as home");
    await own.run(['service', 'create', 'by-browser']);
    await own.run(['push', 'by-browser', '-f', 'Dockerfile', '-c', '.', '-g'], source);
    expect(await own.run(['images', 'by-browser'])).toContain('latest');
    expect((await api({ apiUrl: platform.apiUrl, token: session.token }, '/auth')).status).toBe(200);
    expect(await own.run(['logout'])).toContain('Logged out');
    expect((await api({ apiUrl: platform.apiUrl, token: session.token }, '/auth')).status).toBe(401);
  });

  test('service create, list, info and delete', async () => {
    expect(await jamsocket.run(['service', 'create', 'short'])).toContain('Created service: short');
    await expect(jamsocket.run(['service', 'create', 'short'])).rejects.toThrow('already');
    expect((await jamsocket.run(['service', 'list'])).split('\n')).toContain('short');
    expect(await jamsocket.run(['service', 'info', 'short'])).toMatch(
      /Service: short\n +account: home\n[^]*last image push: -\n[^]*image tag\/digest: latest\n/,
    );
    expect(await jamsocket.run(['images', 'short'])).toContain('No images found');
    const deletion = await jamsocket.run(['service', 'delete', 'short', '--yes']);
    expect(deletion).toMatch(/has no container images, and has never been spawned\.[^]*Deleted service: short/);
    expect((await jamsocket.run(['service', 'list'])).split('\n')).not.toContain('short');
    await expect(jamsocket.run(['service', 'info', 'short'])).rejects.toThrow('ServiceNotFound');
  });

  test('push with commit metadata, push of an image, images', async () => {
    await jamsocket.run(['service', 'create', 'draw']);
    const digest = await push('draw');
    expect(digest).toMatch(/^sha256:[0-9a-f]{64}$/);
    expect(await jamsocket.run(['service', 'info', 'draw'])).toContain(digest);
    const reply = await api(platform, '/v2/service/home/draw/images');
    expect(await reply.json()).toMatchObject({
      images: [
        {
          git_commit: {
            hash: commit,
            branch: 'main',
            message: commitMessage,
            repository: 'acme/whiteboard',
          },
        },
      ],
    });
    const image = `berth-test/jamsocket:${commit}`;
    await docker(
      'tag',
      (await docker('images', '--quiet', '--filter', `label=hash=${commit}`)).split('\n')[0] ?? '',
      image,
    );
    expect(await jamsocket.run(['push', 'draw', image, '-t', 'v2'])).toContain('Done.');
    expect(await pushedImage('draw', 'v2')).toBe(digest);
    await writeFile(join(source, 'www/index.html'), 'changed');
    await expect(push('draw')).rejects.toThrow('unstaged changes');
    await runCommand('git', ['checkout', '--quiet', '.'], { cwd: source, env: jamsocket.env });
  });

  test('connect, backend list, info, logs, metrics and terminate', async () => {
    await deploy('board');
    const options = [
      '-k',
      'room-1',
      '-u',
      'ada',
      '-a',
      '{"a":1}',
      '-e',
      'WORD=hello',
      '-i',
      '60',
      '-l',
      '600',
      '-t',
      'latest',
    ];
    const first = await connect('board', ...options);
    expect(first['spawned']).toBe('true');
    const backend = first['backend id'] ?? '';
    await waitUntilReady(backend);
    expect(await (await fetch(first['backend url'] ?? '')).text()).toBe(page);
    expect(await (await fetch(first['status url'] ?? '')).json()).toMatchObject({ status: 'ready' });
    const again = await connect('board', '-k', 'room-1');
    expect(again).toMatchObject({ 'backend id': backend, 'backend status': 'ready', spawned: 'false' });
    expect(await connect('board', '-k', 'room-1', '--no-spawn')).toMatchObject({ 'backend id': backend });

    expect(await jamsocket.run(['backend', 'list'])).toMatch(
      new RegExp(`${backend}.* ago +home +board +ready .*room-1`),
    );
    const info = await jamsocket.run(['backend', 'info', backend]);
    expect(info).toMatch(/service: +board\naccount: +home\n[^]*key: +room-1\n[^]*Statuses:\n[^]*scheduled[^]*ready/);
    const logs = jamsocket.start(['logs', backend]);
    const metrics = jamsocket.start(['backend', 'metrics', backend]);
    await logs.output(/^(serving hello)$/m);
    await metrics.output(/(\d+\.\d%\s+\d+\.\d\d [KMG]iB\s+\d)/);
    expect(await jamsocket.run(['terminate', backend])).toContain(`Termination requested for backend: ${backend}`);
    await Promise.all([logs.succeeded(), metrics.succeeded()]);
    expect(await jamsocket.run(['backend', 'info', backend])).toMatch(/terminated \(.*kind: soft/);
    expect(await jamsocket.run(['backend', 'logs', backend])).toContain('serving hello');
    expect(await jamsocket.run(['terminate', backend])).toContain('has already terminated');
    await expect(connect('board', '-k', 'room-1', '--no-spawn')).rejects.toThrow('404');
    const others = [await connectTo(platform, 'board'), await connectTo(platform, 'board')].map(
      (each) => each.backend_id,
    );
    expect((await jamsocket.run(['backend', 'terminate', '--force', ...others])).match(/requested/g)).toHaveLength(2);
  });

  test('environments: use-image, connect and the older spawn', async () => {
    await deploy('stage');
    const digest = await deploy('stage', 'v2');
    const body = JSON.stringify({ name: 'staging' });
    expect((await api(platform, '/v2/service/home/stage/environments', { method: 'POST', body })).status).toBe(200);
    const used = await jamsocket.run(['service', 'use-image', 'stage/staging', '-i', digest]);
    expect(used).toContain(`Updated stage/staging to use image ${digest}`);
    await jamsocket.run(['service', 'use-image', 'stage', '-i', 'v2']);
    const info = await jamsocket.run(['service', 'info', 'stage']);
    expect(info).toMatch(new RegExp(`default\\n[^]*digest: v2\\n[^]*staging\\n[^]*digest: ${digest}\\n`));
    const { 'backend id': connected = '' } = await connect('stage/staging');
    const spawned = await jamsocket.run(['spawn', 'stage/staging', '-e', 'WORD=old', '-g', '60', '-l', 'room-2']);
    const older = /backend ID: +(\S+)/.exec(spawned)?.[1] ?? '';
    expect(spawned).toMatch(/spawned: +true/);
    for (const backend of [connected, older]) {
      const described = await jamsocket.run(['backend', 'info', backend]);
      expect(described).toContain(`image digest: ${digest}`);
      expect(described).toMatch(/environment: +staging/);
    }
    await jamsocket.run(['terminate', '-f', connected, older]);
    expect(await jamsocket.run(['service', 'delete', 'stage', '-y'])).toContain('Deleted service: stage');
  });
});

/** Creates a git repository with a Dockerfile and one commit. Returns the commit's hash. */
async function makeRepository(folder: string, env: NodeJS.ProcessEnv): Promise<string> {
  await mkdir(join(folder, 'www'), { recursive: true });
  await copyFile((await staticBusybox()) ?? '', join(folder, 'busybox'));
  await writeFile(join(folder, 'Dockerfile'), dockerfile);
  await writeFile(join(folder, 'www/index.html'), page);
  // Engines are shared: no other test has this commit.
  await writeFile(join(folder, 'www/unique'), randomBytes(8).toString('hex'));
  const origin = 'https://github.com/acme/whiteboard.git';
  return await gitRepository(folder, { origin, message: commitMessage, env });
}
