// Takes about 70 s
/** The commands of the published command line, each as a process, against a platform on a real engine. */
import { execFile } from 'node:child_process';
import { copyFile, mkdir, mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify, stripVTControlCharacters } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { ConnectResponse } from '../../contract/connect.ts';
import type { ImageObject } from '../../contract/service.ts';
import { packImage } from '../../setup/image.ts';
import { runCommand, tryCommand } from '../../setup/command.ts';
import { writeLayouts } from '../clients/layout.ts';
import { testEngines } from '../kit/engines/engines.ts';
import { testImage } from '../kit/engines/images.ts';
import { gitRepository } from '../kit/machine/git-repository.ts';
import { staticBusybox } from '../kit/packages/docker-packages.ts';
import { api, connect } from '../kit/platform/api-client.ts';
import { startPlatform } from '../kit/platform/platform.ts';
import type { TestPlatform } from '../kit/platform/platform.ts';
import { bundled, Cli } from './bundle.ts';
import { codeOfPage } from './log-in-page.ts';

const [engine] = testEngines();

const admin = { user_email: 'ada@example.com', password: 'correct horse battery' };

const digestPattern = /^sha256:[0-9a-f]{64}$/;

describe.skipIf(!engine)('the command line', () => {
  let platform: TestPlatform;
  let folder: string;
  let program: string;
  /** Logged in with the account's token. */
  let cli: Cli;
  const image = `berth-test/cli:${process.pid}`;
  const at = { env: { DOCKER_HOST: engine?.host, DOCKER_BUILDKIT: '0' } };

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'berth-cli-'));
    const passwordFile = join(folder, 'password');
    await writeFile(passwordFile, admin.password, { mode: 0o600 });
    const settings = {
      BERTH_ADMIN_EMAIL: admin.user_email,
      BERTH_ADMIN_PASSWORD_FILE: passwordFile,
      BERTH_SESSION_DOMAIN: 'localhost',
      BERTH_URL_FORM: 'path',
    };
    const [made, started] = await Promise.all([
      bundled(join(folder, 'package')),
      startPlatform({ engine, settings }),
      testImage('serve').then((serving) =>
        runCommand('docker', ['load', '--quiet'], { ...at, input: packImage({ ...serving, tag: image }) }),
      ),
    ]);
    [program, platform] = [made, started];
    cli = await cliAt('home');
    await cli.run(['login', '--token-stdin'], { input: platform.token });
  });
  afterAll(async () => {
    const { stdout } = await tryCommand('docker', ['images', '--format', '{{.Repository}}:{{.Tag}}'], at);
    const own = stdout.split('\n').filter((name) => name === image || name.startsWith(`${platform.registry}/`));
    if (own.length > 0) await tryCommand('docker', ['rmi', '--force', ...own], at);
    await platform[Symbol.asyncDispose]();
    await rm(folder, { recursive: true, force: true });
  });

  async function cliAt(home: string, env: Readonly<Record<string, string>> = {}): Promise<Cli> {
    return await Cli.at(program, join(folder, home), { ...at.env, BERTH_HOST: platform.apiUrl, ...env });
  }

  /** A service with an image. */
  async function deployed(service: string): Promise<string> {
    return (await cli.json<{ digest: string }>('push', service, image, '--create')).digest;
  }

  test('login with a token, push an image, connect, read the log, stop', async () => {
    const own = await cliAt('first');
    const login = await own.run(['login', '--token-stdin'], { input: `${platform.token}\n` });
    expect(login).toEqual({ code: 0, stdout: '', stderr: `Logged in to ${platform.apiUrl} as home\n` });
    expect((await stat(own.configPath)).mode & 0o777).toBe(0o600);
    const pushed = await own.json('push', 'draw', image, '--create');
    expect(pushed).toEqual({ service: 'home/draw', tag: 'latest', digest: expect.stringMatching(digestPattern) });
    const connected = await own.json<ConnectResponse>('connect', 'draw', '--wait');
    expect(connected).toMatchObject({ status: 'ready', spawned: true });
    expect(await (await fetch(connected.url)).text()).toContain('Hello from a test backend');

    const backend = connected.backend_id;
    const row = new RegExp(`^${backend}  home/draw  default +ready +\\d+ s ago +-$`, 'm');
    expect(await own.ok('backend', 'list')).toMatch(row);
    // Without --follow, it ends although the backend runs.
    expect(await own.ok('logs', backend)).toBe('serving\n');
    const following = own.start(['logs', '--follow', '--json', backend]);
    await following.output(/("line":"serving")/);
    expect(await own.json('backend', 'metrics', backend, '--once')).toMatchObject({ backend_id: backend });
    expect(await own.json('backend', 'traffic', backend)).toMatchObject({ backend_id: backend });
    expect(await own.json('terminate', backend, '--wait')).toEqual({ backend, status: 'terminated' });
    const lines = (await following.done).stdout.trimEnd().split('\n');
    expect(lines.map((line) => (JSON.parse(line) as { line: string }).line)).toEqual(['serving', 'bye']);
    expect(await own.ok('backend', 'info', backend)).toMatch(/^terminated +\S+Z +soft, external, exit code 0$/m);
    expect(await own.json('backend', 'list', 'draw', '--limit', '1')).toMatchObject([{ id: backend }]);
    expect(await own.json('backend:list')).toEqual([]);
  });

  /** Logs in as the administrator, in a browser; the first code that is typed is wrong. */
  async function loggedInWithBrowser(home: string): Promise<Cli> {
    const own = await cliAt(home);
    const login = own.inTerminal(['login', 'home', '--no-browser']);
    const { code, text } = await codeOfPage(await login.output(/(http:\S+\/cli-login\/\S+)/), admin);
    expect(text).toContain('berth-cli/');
    await login.output(/(Code on the page)/);
    login.press('000000\r');
    await login.output(/The code is wrong[^]*(Code on the page)/);
    login.press(`${code.slice(0, 3)} ${code.slice(3)}\r`);
    await login.output(/(Logged in to \S+ as home)/);
    expect((await login.done).code).toBe(0);
    return own;
  }

  test('the commands of the README, up to a connected service', async () => {
    const text = await readFile(join(import.meta.dirname, '../../README.md'), 'utf8');
    const commands = text.match(/^bin\/berth (?:login|push|connect) .*$/gm) ?? [];
    expect(commands).toHaveLength(3);
    const home = join(folder, 'readme');
    const checkout = join(home, 'berth');
    for (const each of ['bin', '.berth']) await mkdir(join(checkout, each), { recursive: true });
    await writeFile(join(checkout, '.berth/token'), `${platform.token}\n`);
    const script = `#!/bin/sh\nexec "${process.execPath}" "${program}" "$@"\n`;
    await writeFile(join(checkout, 'bin/berth'), script, { mode: 0o755 });
    await repository(join(home, 'draw'), cli);
    const env = { ...at.env, HOME: home, BERTH_HOST: platform.apiUrl, BERTH_ACCOUNT: '' };
    // Earlier tests may have created the service.
    const lines = commands.map((line) => line.replaceAll(' draw ', ' from-readme '));
    const output = await runCommand('sh', ['-e', '-c', lines.join('\n')], { cwd: checkout, env });
    expect(output).toMatch(/^status: +ready$/m);
  });

  test('login in a browser, whoami, logout', async () => {
    const own = await loggedInWithBrowser('browser');
    const who = { user: admin.user_email, account: 'home', accounts: [{ name: 'home', role: 'owner' }] };
    expect(await own.json('whoami')).toEqual({ host: platform.apiUrl, ...who, token_from: 'file' });
    const { hosts } = JSON.parse(await readFile(own.configPath, 'utf8')) as {
      hosts: Record<string, { token: string }>;
    };
    const token = hosts[platform.apiUrl]?.token ?? '';
    expect((await api({ apiUrl: platform.apiUrl, token }, '/v2/accounts')).status).toBe(200);
    expect((await own.run(['logout'])).stderr).toBe(`Logged out of ${platform.apiUrl}\n`);
    expect((await api({ apiUrl: platform.apiUrl, token }, '/v2/accounts')).status).toBe(401);
    expect(await own.run(['whoami'])).toMatchObject({
      code: 4,
      stderr: expect.stringContaining('You are not logged in'),
    });
  });

  test('a log-in ends if it cannot be stored, and when the next one replaces it', async () => {
    const own = await loggedInWithBrowser('replaced');
    const token = async () => {
      const { hosts } = JSON.parse(await readFile(own.configPath, 'utf8')) as {
        hosts: Record<string, { token: string }>;
      };
      return hosts[platform.apiUrl]?.token ?? '';
    };
    const first = await token();
    const commandLines = async () => {
      const answer = await api({ apiUrl: platform.apiUrl, token: await token() }, '/v2/user/logins');
      const { log_ins: logIns } = (await answer.json()) as { log_ins: { kind: string }[] };
      return logIns.filter(({ kind }) => kind === 'command-line').length;
    };
    const before = await commandLines();
    const unknownAccount = own.inTerminal(['login', 'nobody', '--no-browser']);
    const { code } = await codeOfPage(await unknownAccount.output(/(http:\S+\/cli-login\/\S+)/), admin);
    await unknownAccount.output(/(Code on the page)/);
    unknownAccount.press(`${code}\r`);
    expect((await unknownAccount.done).code).toBe(5);
    expect([await token(), await commandLines()]).toEqual([first, before]);
    await loggedInWithBrowser('replaced');
    expect(await token()).not.toBe(first);
    expect(await commandLines()).toBe(before);
    expect((await api({ apiUrl: platform.apiUrl, token: first }, '/v2/accounts')).status).toBe(401);
  });

  test('Ctrl-C at a prompt writes no file', async () => {
    const own = await cliAt('interrupted');
    const login = own.inTerminal(['login', '--no-browser']);
    await codeOfPage(await login.output(/(http:\S+\/cli-login\/\S+)/), admin);
    await login.output(/(Code on the page)/);
    login.press('\u0003');
    expect((await login.done).code).toBe(130);
    await expect(stat(own.configPath)).rejects.toThrow('ENOENT');
  });

  test('push of a build with the git commit; a dirty tree is rejected', async () => {
    const source = await repository(join(folder, 'source'), cli);
    await expect(cli.run(['push', 'built', '-c', source])).resolves.toMatchObject({
      code: 5,
      stderr: expect.stringContaining('--create'),
    });
    const options = ['--file', join(source, 'Dockerfile'), '--context', source, '--include-git-commit', '--tag', 'v1'];
    const { digest } = await cli.json<{ digest: string }>('push', 'built', '--create', ...options);
    expect(await cli.json<ImageObject[]>('image', 'list', 'built')).toMatchObject([
      { digest, tag: 'v1', git_commit: { branch: 'main', message: commitMessage, repository: 'acme/whiteboard' } },
    ]);
    await cli.ok('image', 'pull', 'built', 'v1');
    expect(await cli.ok('images', 'built')).toMatch(/^sha256:\w+ +v1 +\d+ s ago +[0-9a-f]{8} \(main\) Draw "circles"/m);
    await writeFile(join(source, 'more'), 'changed');
    const dirty = await cli.run(['push', 'built', ...options]);
    expect(dirty).toMatchObject({
      code: 1,
      stdout: '',
      stderr: expect.stringContaining('has 1 uncommitted change'),
    });
    expect((await cli.run(['push', 'built', ...options, '--allow-dirty'])).code).toBe(0);
    expect(await readFile(join(cli.home, '.docker/config.json'), 'utf8').catch(() => 'none')).toBe('none');
  });

  test('in a terminal, a push shows its progress: docker per layer, an upload as a bar', async () => {
    const { folder: layouts } = await writeLayouts(join(folder, 'drawn'), ['small']);
    const pushed = await cli.inTerminal(['push', 'drawn', image, '--create']).done;
    const [plain, moves] = [stripVTControlCharacters(pushed.stdout), pushed.stdout.split('\u001b[1A').length];
    expect([plain, moves > 1]).toEqual([expect.stringMatching(/: (?:Pushed|Mounted from|Layer already exists)/), true]);
    const uploaded = await cli.inTerminal(['push', 'drawn', '--archive', join(layouts, 'small')]).done;
    const rows = uploaded.stdout.split('\r\u001b[K');
    expect([rows[1], rows.at(-1)]).toEqual([
      expect.stringMatching(/^\[ {24}\] 0 B of /),
      expect.stringMatching(/^Uploaded: /),
    ]);
    expect([pushed.code, uploaded.code]).toEqual([0, 0]);
  });

  test('push of a layout and of archives without Docker, image pull, rm', async () => {
    const own = await cliAt('without-docker', { DOCKER_HOST: 'unix:///nowhere' });
    await own.run(['login', '--token-stdin'], { input: platform.token });
    const { folder: layouts } = await writeLayouts(join(folder, 'layouts'), ['small']);
    const first = await own.run([
      'push',
      'packed',
      '--archive',
      join(layouts, 'small'),
      '--create',
      '--tag',
      'v1',
      '--json',
    ]);
    expect(first.stderr).toContain('Uploaded: ');
    const { digest } = JSON.parse(first.stdout) as { digest: string };
    expect(digest).toMatch(digestPattern);
    const archive = join(folder, 'packed.tar');
    await own.ok('image', 'pull', 'packed', 'v1', '--output', archive);
    expect(await own.json('push', 'packed', '--archive', archive, '--tag', 'v2')).toMatchObject({ tag: 'v2', digest });
    const piped = await own.run(['push', 'packed', '--archive', '-', '--tag', 'v3', '--json'], {
      input: await readFile(archive),
    });
    expect(JSON.parse(piped.stdout)).toMatchObject({ tag: 'v3', digest });
    const broken = await own.run(['push', 'packed', '--archive', own.program]);
    expect(broken).toMatchObject({ code: 2, stdout: '' });
    expect(await own.run(['image', 'rm', 'packed', 'v1'])).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('--yes'),
    });
    await own.ok('image', 'rm', 'packed', 'v1', '--yes');
    expect(await own.json('image', 'list', 'packed')).toEqual([]);
    expect((await own.run(['image', 'rm', 'packed', 'v1', '--yes'])).code).toBe(5);
  });

  test('a push reports its own digest, not that of an earlier pull of the same image', async () => {
    const { folder: layouts } = await writeLayouts(join(folder, 'pulled'), ['small']);
    const uploaded = await cli.json<{ digest: string }>(
      'push',
      'again',
      '--archive',
      join(layouts, 'small'),
      '--create',
    );
    const source = `${platform.registry}/home/again`;
    const config = join(folder, 'pulled-docker');
    const env = { ...at.env, DOCKER_CONFIG: config };
    const login = ['login', '--username', 'home', '--password-stdin', platform.registry];
    await runCommand('docker', login, { env, input: platform.token });
    await runCommand('docker', ['pull', '--quiet', `${source}@${uploaded.digest}`], { env });
    const pushed = await cli.json<{ digest: string }>('push', 'again', `${source}@${uploaded.digest}`, '--tag', 'v2');
    const images = await cli.json<ImageObject[]>('image', 'list', 'again');
    expect(images.find(({ tag }) => tag === 'v2')?.digest).toBe(pushed.digest);
    expect(pushed.digest).not.toBe(uploaded.digest);
  });

  test('service: create, list, info, settings with secrets, delete', async () => {
    await cli.ok('service', 'create', 'short');
    expect((await cli.run(['service', 'create', 'short'])).stderr).toMatch(/^Error: .*already/);
    expect((await cli.ok('service', 'list')).split('\n')).toContain('short');
    expect(await cli.ok('service', 'info', 'home/short')).toMatch(
      /^service: +home\/short$[^]*^default +latest +default +-$/m,
    );
    const secret = { input: 'hidden value\n', env: { FROM_HERE: 'from here' } };
    const changes = ['--set', 'port=3000', '--env', 'LEVEL=3', '--env', 'FROM_HERE', '--secret', 'KEY=-', '--public'];
    const changed = await cli.run(['service', 'settings', 'short', ...changes], secret);
    expect(changed.stdout).toMatch(
      /^port: +3000$[^]*^public: +yes$[^]*^env LEVEL=3$\n^env FROM_HERE=from here$\n^secret KEY$/m,
    );
    expect(changed.stdout).not.toContain('hidden');
    const inCommandLine = await cli.run(['service', 'settings', 'short', '--secret', 'KEY=visible']);
    expect(inCommandLine).toMatchObject({ code: 2, stdout: '' });
    expect(inCommandLine.stderr).not.toContain('visible');
    const restored = await cli.json(
      'service',
      'settings',
      'short',
      '--unset',
      'port',
      '--unset-env',
      'LEVEL',
      '--unset-secret',
      'KEY',
      '--no-public',
    );
    expect(restored).toMatchObject({ port: null, env: { FROM_HERE: 'from here' }, secrets: [], public: false });
    expect((await cli.run(['service', 'settings', 'short', '--set', 'prot=1'])).stderr).toContain('prot');

    expect(await cli.run(['service', 'delete', 'short'])).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('Use --yes'),
    });
    const mistyped = cli.inTerminal(['service', 'delete', 'short']);
    await mistyped.output(/(Type short to continue)/);
    mistyped.press('sort\r');
    expect(await mistyped.done).toMatchObject({ code: 1 });
    const deletion = cli.inTerminal(['service', 'delete', 'short']);
    await deletion.output(/(Type short to continue)/);
    deletion.press('short\r');
    expect(await deletion.done).toMatchObject({ code: 0 });
    expect(await cli.run(['service', 'delete', 'short', '--yes', '--json'])).toMatchObject({
      code: 5,
      stderr: expect.stringMatching(/^{"error":{"code":"ServiceNotFound",.*"status":404,"id":"[^"]+"}}\n$/),
    });
  });

  test('environments, use-image and rollback', async () => {
    const older = await deployed('stage');
    const layouts = await writeLayouts(join(folder, 'stage'), ['small']);
    const newer = (
      await cli.json<{ digest: string }>('push', 'stage', '--archive', join(layouts.folder, 'small'), '--tag', 'latest')
    ).digest;
    await cli.ok('environment', 'create', 'stage/staging', '--image', newer);
    await cli.ok('service', 'use-image', 'stage', '-i', newer);
    expect(await cli.json('service', 'rollback', 'stage')).toMatchObject({
      environment: 'default',
      from: newer,
      to: older,
    });
    expect(await cli.json('service', 'rollback', 'stage/staging')).toMatchObject({
      environment: 'staging',
      from: newer,
      to: older,
    });
    expect(await cli.run(['service', 'rollback', 'stage'])).toMatchObject({
      code: 5,
      stderr: expect.stringContaining('no image that was pushed before'),
    });
    expect(await cli.json('environment', 'list', 'stage')).toMatchObject([
      { name: 'default', image_tag: older },
      { name: 'staging', image_tag: older },
    ]);
    expect(await cli.run(['connect', 'home/stage'])).toMatchObject({
      code: 5,
      stderr: expect.stringContaining('means SERVICE/ENVIRONMENT'),
    });
    await cli.ok('environment', 'delete', 'stage/staging', '--yes');
    expect(await cli.json('environment', 'list', 'stage')).toHaveLength(1);
  });

  test('connect with all options, spawn, stop-all', async () => {
    await deployed('board');
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
      '--wait',
    ];
    const first = await cli.json<ConnectResponse>('connect', 'board', ...options);
    const seen = await (await fetch(`${first.url}cgi-bin/env`)).text();
    expect(seen).toMatch(/^HTTP_X_VERIFIED_USERNAME=ada$/m);
    expect(seen).toMatch(/^HTTP_X_VERIFIED_USER_DATA={"a":1}$/m);
    expect(seen).toMatch(/^WORD=hello$/m);
    expect(await cli.ok('connect', 'board', '--key', 'room-1', '--no-spawn')).toMatch(
      new RegExp(`^url: +http\\S+\\nbackend: +${first.backend_id}\\nstatus: +ready\\nspawned: +false\\n`),
    );
    expect(await cli.json('connect', 'board', '--key', 'room-1', '--url-form', 'host')).toMatchObject({
      url: expect.stringMatching(/^http:\/\/[a-z2-7]{52}\.localhost:\d+\/$/),
    });
    expect(await cli.run(['connect', 'board', '--key', 'room-2', '--no-spawn'])).toMatchObject({ code: 5 });
    const browser = join(folder, 'opens');
    await writeFile(
      browser,
      `#!/bin/sh\nprintf '%s' "$*" > '${browser}.part' && mv '${browser}.part' '${browser}.url'\n`,
      { mode: 0o755 },
    );
    const opening = ['connect', 'board', '--key', 'room-1', '--open', '--json'];
    const opened = await cli.run(opening, { env: { BROWSER: browser } });
    const { ready_url: page } = JSON.parse(opened.stdout) as ConnectResponse;
    await expect.poll(async () => await readFile(`${browser}.url`, 'utf8').catch(() => '')).toBe(page);
    const without = await cli.run(opening, { env: { BROWSER: '', DISPLAY: '', WAYLAND_DISPLAY: '' } });
    expect(without).toMatchObject({ code: 0, stderr: expect.stringContaining('open the URL yourself') });
    expect(await cli.json('spawn', 'board/default', '-l', 'room-1', '-g', '60')).toMatchObject({ spawned: false });
    expect(await cli.json('service', 'stop-all', 'board', '--dry-run')).toMatchObject({
      backend_count: 1,
      stopped_count: 0,
    });
    expect(await cli.json('service', 'stop-all', 'board', '--force')).toMatchObject({
      backend_count: 1,
      stopped_count: 1,
    });
  });

  test('exit codes of a timeout and of Ctrl-C; a wait reports why the container does not answer', async () => {
    const deaf = { ...(await testImage('deaf')), tag: `${image}-deaf` };
    await runCommand('docker', ['load', '--quiet'], { ...at, input: packImage(deaf) });
    await cli.ok('push', 'deaf', deaf.tag, '--create');
    await tryCommand('docker', ['rmi', deaf.tag], at);
    const late = await cli.run(['connect', 'deaf', '--key', 'a', '--wait', '--timeout', '1']);
    expect(late).toMatchObject({ code: 124, stdout: '' });
    const { backend_id: backend } = await connect(platform, 'deaf', { key: 'a' });
    const following = cli.start(['connect', 'deaf', '--key', 'a', '--wait']);
    await following.output(/(waiting until it is ready)/);
    const problem = 'The container listens on no TCP port, expected 8080';
    await following.output(new RegExp(`(Warning: ${problem})`));
    expect(await cli.ok('backend', 'info', backend)).toContain(problem);
    following.kill('SIGINT');
    expect(await following.done).toMatchObject({ code: 130, stdout: '' });
    await cli.ok('backend', 'stop', '--force', backend);
  });

  test('escapes in a log do not control the terminal; colours are printed to a terminal only', async () => {
    const source = await repository(join(folder, 'hostile'), cli);
    await cli.ok('push', 'hostile', '--context', source, '--create');
    const { backend_id: backend } = await cli.json<ConnectResponse>('connect', 'hostile', '--wait');
    const dangerous = String.raw`\x1b]0;title\x07`;
    expect(await cli.ok('logs', backend)).toBe(`${dangerous}red\n`);
    const line = await cli.json('logs', backend);
    expect(line).toMatchObject({ line: '\u001b]0;title\u0007\u001b[31mred' });
    const shown = cli.inTerminal(['logs', backend], { env: { TERM: 'xterm' } });
    expect((await shown.done).stdout).toBe(`${dangerous}\u001b[31mred\u001b[0m\r\n`);
    const plain = cli.inTerminal(['logs', backend], { env: { NO_COLOR: '1' } });
    expect((await plain.done).stdout).toBe(`${dangerous}red\r\n`);
    await cli.ok('backend', 'stop', '--force', backend);
  });

  test('admin: users, accounts, members, limits, trust rules, audit', async () => {
    const own = await loggedInWithBrowser('admin');
    expect(await own.run(['admin', 'user', 'list'], { env: { BERTH_TOKEN: platform.token } })).toMatchObject({
      code: 4,
    });
    const invitation = await own.ok('admin', 'user', 'create', 'bob@example.com');
    expect(invitation).toMatch(/^http\S+\/invitation#\S+\n$/);
    expect(await own.ok('admin', 'user', 'invite', 'bob@example.com')).not.toBe(invitation);
    await own.ok('admin', 'user', 'update', 'bob@example.com', '--admin', '--disable');
    expect(await own.ok('admin', 'user', 'list')).toMatch(/^bob@example.com +administrator +locked out +\d+ s ago$/m);
    expect(await own.run(['admin', 'user', 'update', 'bob@example.com'])).toMatchObject({ code: 2 });
    await own.ok('admin', 'account', 'create', 'acme');
    // The log-in is now valid for two accounts, so the command asks for one.
    const again = own.inTerminal(['login', '--no-browser']);
    const { code } = await codeOfPage(await again.output(/(http:\S+\/cli-login\/\S+)/), admin);
    await again.output(/(Code on the page)/);
    again.press(`${code}\r`);
    const first = await again.output(/Which one should commands use\?[^]*?(acme|home)[^]*?(?:acme|home)/);
    again.press('\r');
    await again.output(/(Logged in to)/);
    await again.done;
    expect(await own.json('whoami')).toMatchObject({ account: first });
    expect(await own.json('admin', 'account', 'list')).toEqual(
      expect.arrayContaining([{ name: 'acme', role: 'owner' }]),
    );
    await own.ok('admin', 'member', 'set', 'bob@example.com', 'viewer');
    expect(await own.json('admin', 'member', 'list')).toMatchObject([
      { user_email: admin.user_email },
      { user_email: 'bob@example.com', role: 'viewer' },
    ]);
    await own.ok('admin', 'member', 'remove', 'bob@example.com');
    expect(await own.json('admin', 'limits', 'acme', '--running-backends', '7')).toMatchObject({ running_backends: 7 });
    expect(await own.ok('admin', 'limits', 'acme', '--running-backends', 'none')).toMatch(/^running_backends: +none$/m);
    const { id } = await own.json<{ id: string }>(
      'admin',
      'trust',
      'create',
      'acme/draw',
      '--branch',
      'main',
      '--lifetime',
      '5m',
      '--scope',
      'push,deploy',
      '--scope',
      'connect',
    );
    expect(await own.ok('admin', 'trust', 'list')).toMatch(
      new RegExp(`^${id} +acme/draw +main +any +all +push,deploy,connect$`, 'm'),
    );
    await own.ok('admin', 'trust', 'delete', id);
    const [latest, ...earlier] = (await own.ok('admin', 'audit', '--limit', '3', '--json')).trimEnd().split('\n');
    expect([JSON.parse(latest ?? ''), earlier.length]).toEqual([
      expect.objectContaining({ action: 'deleteTrustRule' }),
      2,
    ]);
    expect(await own.ok('admin', 'audit', '--platform')).toMatch(/ createUser +ada@example.com /);
  });

  test('node list, drain and undrain: a drained node starts no backend, and waiting backends start afterwards', async () => {
    const own = await loggedInWithBrowser('nodes');
    await deployed('drained');
    expect(await own.ok('node', 'list')).toMatch(
      new RegExp(`^${platform.node} +default +alive +\\d+ +\\S+ +\\d+ \\w+ ago$`, 'm'),
    );
    await own.ok('node', 'drain', platform.node);
    // The drain persists when the process of the node ends.
    await platform.kill();
    await platform.restart();
    expect(await own.json('node', 'list')).toMatchObject([{ name: platform.node, drained_at: expect.any(String) }]);
    const { backend_id: backend } = await cli.json<ConnectResponse>('connect', 'drained', '--key', 'a');
    const waiting = await cli.run(['connect', 'drained', '--key', 'a', '--wait', '--timeout', '3']);
    expect(waiting).toMatchObject({ code: 124 });
    expect(await cli.json('backend', 'info', backend)).toMatchObject({ statuses: [{ status: 'scheduled' }] });
    await own.ok('node', 'undrain', platform.node);
    expect(await cli.json('connect', 'drained', '--key', 'a', '--wait')).toMatchObject({
      status: 'ready',
      spawned: false,
    });
    await cli.ok('backend', 'stop', '--force', backend);
    expect(await own.run(['node', 'drain', 'none'])).toMatchObject({ code: 5 });
  });

  test('doctor prints the result of each check, and exits with 1 if one fails', async () => {
    const healthy = await cli.run(['doctor']);
    expect(healthy).toMatchObject({ code: 0, stderr: '' });
    const names = ['configuration', 'platform', 'clock', 'log-in', 'account', 'registry', 'docker', 'git'];
    expect(healthy.stdout.match(/^ok +([\w-]+):/gm)?.map((line) => line.replace(/^ok +|:/g, ''))).toEqual(names);
    const rejected = await cli.run(['doctor', '--json'], {
      env: { BERTH_TOKEN: `${platform.token}x`, DOCKER_HOST: 'unix:///nowhere' },
    });
    expect(rejected.code).toBe(1);
    const findings = rejected.stdout
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as { check: string; status: string });
    expect(Object.fromEntries(findings.map(({ check, status }) => [check, status]))).toEqual({
      configuration: 'ok',
      platform: 'ok',
      clock: 'ok',
      'log-in': 'error',
      account: 'skipped',
      registry: 'skipped',
      docker: 'warning',
      git: 'ok',
    });
  });

  test('registry gc, verify and admin quota in a checkout, on the machine with the data', async () => {
    const entry = join(import.meta.dirname, '../../cli/berth.ts');
    const here = { env: { ...platform.environment, BERTH_TOKEN: 'home.unused' } };
    const checkout = async (...args: string[]) =>
      (await promisify(execFile)(process.execPath, [entry, ...args], here)).stdout;
    expect(await checkout('registry', 'gc', '--dry-run')).toContain('Nothing was changed.');
    expect(await checkout('registry', 'verify', '--json')).toMatch(/"type":"verified".*"problems":0/);
    expect(await checkout('admin', 'quota', 'home')).toMatch(/^home: /);
  });

  test('token create, list, revoke', async () => {
    const expires = ['--scope', 'push,deploy', '--scope', 'read', '--service', 'draw', '--expires', '30d'];
    const created = await cli.run(['token', 'create', 'CI of draw', ...expires]);
    expect(created.stdout).toMatch(/^home\.berth_pat_\w+\n$/);
    expect(created.stderr).not.toContain('berth_pat_');
    const [token] = await cli.json<{ id: string; name: string }[]>('token', 'list');
    expect(token).toMatchObject({ name: 'CI of draw', scopes: ['push', 'deploy', 'read'], services: ['draw'] });
    const asToken = { env: { BERTH_TOKEN: created.stdout.trim() } };
    expect(await cli.run(['service', 'delete', 'draw', '--yes'], asToken)).toMatchObject({ code: 4 });
    await cli.ok('token', 'revoke', token?.id ?? '');
    const revoked = await cli.run(['service', 'info', 'draw'], asToken);
    expect(revoked).toMatchObject({ code: 4, stderr: expect.stringContaining('BERTH_TOKEN') });
  });
});

/** Its container prints a line that sets the title of a terminal and the colour of the text after it. */
const dockerfile = String.raw`FROM scratch
COPY busybox /bin/busybox
CMD ["/bin/busybox", "sh", "-c", "printf '\\033]0;title\\007\\033[31mred\\n'; exec /bin/busybox httpd -f -p $PORT"]
`;

const commitMessage = `Draw "circles" — with $money`;

/** A git repository with a Dockerfile, and one commit. Returns the folder. */
async function repository(source: string, { env }: Cli): Promise<string> {
  await mkdir(source, { recursive: true });
  await copyFile((await staticBusybox()) ?? '', join(source, 'busybox'));
  await writeFile(join(source, 'Dockerfile'), dockerfile);
  const origin = 'https://ada:secret@github.com/acme/whiteboard.git';
  await gitRepository(source, { origin, message: commitMessage, env });
  return source;
}
