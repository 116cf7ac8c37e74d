// Takes about 30 s
/** The conventions of all commands of the command line, tested with the published bundle as a process, without a platform. */
import { chmod, mkdir, mkdtemp, readFile, readdir, rm, stat, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { ServerResponse } from 'node:http';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { openTestApi } from '../../api/testing/test-api.ts';
import { devCommand } from '../../cli/commands/server.ts';
import { Session } from '../../cli/session.ts';
import { devOptions } from '../../main/dev/settings.ts';
import { runCommand } from '../../setup/command.ts';
import type { RunningProgram } from '../kit/machine/running-program.ts';
import { bundled, Cli } from './bundle.ts';

let folder: string;
let program: string;
let api: Awaited<ReturnType<typeof openTestApi>>;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'berth-cli-'));
  [program, api] = await Promise.all([bundled(join(folder, 'package')), openTestApi()]);
});
afterAll(async () => {
  await api[Symbol.asyncDispose]();
  await rm(folder, { recursive: true, force: true });
});

async function cliAt(home: string, env: Readonly<Record<string, string>> = {}): Promise<Cli> {
  return await Cli.at(program, join(folder, home), { BERTH_HOST: api.base, ...env });
}

/** Parses a time that `times` prints, such as `0m0.070s`. */
function secondsOf(text: string): number {
  const [, minutes, seconds] = /^(\d+)m([\d.]+)s$/.exec(text) ?? [];
  return Number(minutes) * 60 + Number(seconds);
}

async function loggedIn(home: string): Promise<Cli> {
  const cli = await cliAt(home);
  const { code, stderr } = await cli.run(['login', '--token-stdin'], { input: api.token });
  if (code !== 0) throw new Error(stderr);
  return cli;
}

test('the package is one file that npm installs and runs, and prints its version in less than 150 ms', async () => {
  const packed = JSON.parse(await runCommand('npm', ['pack', '--json', '--dry-run'], { cwd: dirname(program) })) as [
    { files: { path: string }[] },
  ];
  expect(packed[0].files.map(({ path }) => path).toSorted()).toEqual([
    'LICENSE',
    'README.md',
    'berth.mjs',
    'package.json',
  ]);
  const { version } = JSON.parse(await readFile(join(dirname(program), 'package.json'), 'utf8')) as { version: string };
  const cli = await cliAt('version');
  expect(await cli.run(['--version'])).toEqual({ code: 0, stdout: `${version}\n`, stderr: '' });
  // CPU time, because the machine also runs other tests.
  const times: number[] = [];
  for (let i = 0; i < 7; i += 1) {
    const text = await runCommand('sh', ['-c', '"$0" "$1" --version > /dev/null; times', cli.node, cli.program]);
    const [user = 0, system = 0] = (text.trimEnd().split('\n').at(-1) ?? '').split(' ').map(secondsOf);
    times.push(user + system);
  }
  expect(Math.min(...times)).toBeLessThan(0.15);
});

test.each([
  [['sevre'], /unknown command 'sevre'\nDid you mean serve\?/],
  [['dve'], /Did you mean dev\?/],
  [['dev', '--prot', '1'], /unknown option '--prot'\nDid you mean --port\?/],
  [['servic', 'list'], /unknown command 'servic'\nDid you mean service\?/],
  [['service', 'lst'], /unknown command 'lst'\nDid you mean one of list, ls\?/],
  [['connect', 'draw', '--kee', 'a'], /unknown option '--kee'\nDid you mean --key\?/],
  [['push'], /missing required argument 'service'/],
  [['logs', 'a', 'b'], /too many arguments/],
  [
    ['connect', 'draw', '--timeout', 'soon'],
    /option '--timeout <seconds>' argument 'soon' is invalid. It is not a whole number/,
  ],
  [['connect', 'a/b/c/d'], /use SERVICE, SERVICE\/ENVIRONMENT or ACCOUNT\/SERVICE\/ENVIRONMENT/],
  [['connect', 'draw', '--no-spawn'], /--no-spawn needs --key/],
  [['connect', 'draw', '--timeout', '5'], /--timeout needs --wait/],
  [['backend', 'list', '--since', '12h'], /--since and --limit need a service/],
  [['connect', 'draw', '--auth', '[]'], /It is not a JSON object/],
  [['push', 'draw', 'image', '--context', '.'], /--context is an option of a build/],
  [['service', 'settings', 'draw', '--secret', 'A=-', '--secret', 'B=-'], /--secret: Only one value can be read from/],
  [['service', 'list', '--host', 'ftp://berth.example'], /--host: Use an address with https: or http:/],
  [['backend', 'stop'], /missing required argument 'backends'/],
])('berth %j is a usage error', async (args, message) => {
  const cli = await cliAt('usage', { BERTH_TOKEN: 'home.berth_pat_x' });
  const { code, stdout, stderr } = await cli.run(args);
  expect([code, stdout, stderr]).toEqual([2, '', expect.stringMatching(message)]);
});

test('help has examples, and is printed to standard output only if it was requested', async () => {
  const cli = await cliAt('help');
  expect(await cli.run(['connect', '--help'])).toMatchObject({
    code: 0,
    stderr: '',
    stdout: expect.stringContaining('\n  $ berth connect draw --key room-1'),
  });
  expect(await cli.run(['help', 'push'])).toMatchObject({
    code: 0,
    stderr: '',
    stdout: expect.stringContaining('--include-git-commit'),
  });
  expect(await cli.run(['service'])).toMatchObject({
    code: 2,
    stdout: '',
    stderr: expect.stringContaining('use-image'),
  });
});

test('the log-ins are in a file that only its owner can read, and that is replaced atomically', async () => {
  const cli = await loggedIn('file');
  expect((await stat(cli.configPath)).mode & 0o777).toBe(0o600);
  expect((await stat(dirname(cli.configPath))).mode & 0o777).toBe(0o700);
  await chmod(cli.configPath, 0o644);
  const { ino } = await stat(cli.configPath);
  expect(await cli.run(['doctor', '--json'])).toMatchObject({
    code: 1,
    stdout: expect.stringMatching(/"configuration","status":"error","message":"Others can read/),
  });
  await cli.run(['login', '--token-stdin'], { input: api.token });
  const replaced = await stat(cli.configPath);
  expect([replaced.mode & 0o777, replaced.ino === ino]).toEqual([0o600, false]);
  expect(await readdir(dirname(cli.configPath))).toEqual(['config.json']);
  // Another folder, with the variable of the XDG specification.
  const elsewhere = join(folder, 'xdg');
  await cli.run(['login', '--token-stdin'], { input: api.token, env: { XDG_CONFIG_HOME: elsewhere } });
  expect(await readdir(join(elsewhere, 'berth'))).toEqual(['config.json']);
});

test('a damaged file is reported and not changed', async () => {
  const cli = await cliAt('damaged', { BERTH_HOST: '' });
  await mkdir(dirname(cli.configPath), { recursive: true });
  await writeFile(cli.configPath, '{"hosts":');
  for (const args of [['whoami'], ['service', 'list'], ['logout']]) {
    expect(await cli.run(args)).toMatchObject({ code: 1, stdout: '', stderr: expect.stringContaining(cli.configPath) });
  }
  expect(await readFile(cli.configPath, 'utf8')).toBe('{"hosts":');
});

test('a stored token is sent to its own platform only', async () => {
  const cli = await loggedIn('two-hosts');
  const seen: (string | undefined)[] = [];
  const other = createServer((request, response) => {
    seen.push(request.headers.authorization);
    response.writeHead(404).end();
  });
  await new Promise<void>((resolve) => other.listen(0, '127.0.0.1', resolve));
  const { port } = other.address() as { port: number };
  expect(await cli.run(['service', 'list', '--host', `127.0.0.1:${port}`])).toMatchObject({
    code: 4,
    stderr: expect.stringContaining('You are not logged in to'),
  });
  await new Promise((resolve) => other.close(resolve));
  expect(seen).toEqual([]);
});

test('variables replace a log-in, and options override variables', async () => {
  const cli = await cliAt('variables', { BERTH_TOKEN: api.token });
  expect(await cli.json('service', 'list')).toEqual(['draw']);
  expect(await cli.run(['service', 'list'], { env: { BERTH_ACCOUNT: 'other' } })).toMatchObject({ code: 5 });
  expect(await cli.run(['service', 'list', '--account', 'acme'], { env: { BERTH_ACCOUNT: 'other' } })).toMatchObject({
    code: 0,
  });
  expect(await cli.run(['service', 'list'], { env: { BERTH_HOST: '127.0.0.1:1' } })).toMatchObject({
    code: 1,
    stdout: '',
    stderr: expect.stringContaining('No response'),
  });
});

test('no error contains a token, and a token is not accepted as an argument', async () => {
  const cli = await cliAt('secrets', { BERTH_TOKEN: `${api.token}x` });
  const rejected = await cli.run(['login', '--token', api.token]);
  expect(rejected).toMatchObject({ code: 2, stderr: expect.stringContaining('--token-stdin') });
  const secret = api.token.split('.').at(-1) ?? '';
  const outcomes = [
    rejected,
    await cli.run(['service', 'list']),
    await cli.run(['service', 'list', `--${api.token}`]),
    await cli.run([api.token, '--json']),
    await cli.run(['login', '--token-stdin'], { input: `${api.token}x` }),
  ];
  for (const { code, stdout, stderr } of outcomes) {
    expect(code).toBeGreaterThan(0);
    expect(stdout + stderr).not.toContain(secret);
  }
});

test('without a terminal no command prompts: the error names the option', async () => {
  const cli = await loggedIn('no-terminal');
  for (const [args, option] of [
    [['login'], '--token-stdin'],
    [['service', 'delete', 'draw'], '--yes'],
    [['environment', 'delete', 'draw/default'], '--yes'],
    [['push', 'nothing', 'image'], '--create'],
  ] as const) {
    const { code, stderr } = await cli.run(args);
    expect([code !== 0, stderr]).toEqual([true, expect.stringContaining(option)]);
  }
  const running = cli.inTerminal(['service', 'delete', 'draw', '--no-input']);
  expect(await running.done).toMatchObject({ code: 2 });
});

test('errors in JSON are one object on standard error, with a stable code', async () => {
  const cli = await cliAt('json-errors', { BERTH_TOKEN: api.token });
  const { code, stdout, stderr } = await cli.run(['service', 'info', 'none', '--json']);
  expect([code, stdout]).toEqual([5, '']);
  expect(JSON.parse(stderr)).toEqual({
    error: {
      code: 'ServiceNotFound',
      message: expect.any(String),
      hint: expect.any(String),
      status: 404,
      id: expect.any(String),
    },
  });
  const usage = await cli.run(['--json', 'service', 'infoo']);
  expect(JSON.parse(usage.stderr)).toEqual({
    error: { code: 'Usage', message: "unknown command 'infoo'", hint: 'Did you mean info?' },
  });
});

test('colours are for terminals, and only without NO_COLOR', async () => {
  const cli = await cliAt('colours', { BERTH_TOKEN: api.token });
  const colored = '\u001b[31mError:\u001b[39m';
  const inTerminal = async (env: Record<string, string>) => (await cli.inTerminal(['nothing'], { env }).done).stdout;
  expect((await cli.run(['nothing'])).stderr).not.toContain('\u001b');
  expect(await inTerminal({})).toContain(colored);
  expect(await inTerminal({ NO_COLOR: '1' })).not.toContain('\u001b');
  expect(await inTerminal({ TERM: 'dumb' })).not.toContain('\u001b');
  expect((await cli.run(['nothing'], { env: { CLICOLOR_FORCE: '1' } })).stderr).toContain(colored);
});

test('a server that answers with escapes cannot control the terminal', async () => {
  const hostile = createServer((_request, response) => {
    const error = {
      code: 'Bad\u001b]0;x\u0007',
      message: 'Title \u001b]0;pwned\u0007 \u009b2J \u202e',
      status: 418,
      id: 'a\u001b[2J',
    };
    response.writeHead(418, { 'content-type': 'application/json' }).end(JSON.stringify({ error }));
  });
  await new Promise<void>((resolve) => hostile.listen(0, '127.0.0.1', resolve));
  const { port } = hostile.address() as { port: number };
  const cli = await cliAt('hostile', { BERTH_HOST: `http://127.0.0.1:${port}`, BERTH_TOKEN: 'home.x' });
  for (const args of [['service', 'list'], ['service', 'list', '--json'], ['whoami'], ['doctor']]) {
    const { code, stdout, stderr } = await cli.run(args);
    expect(code).toBe(1);
    expect((stdout + stderr).replaceAll('\n', '')).not.toMatch(/[\p{Cc}\u202e]/u);
  }
  hostile.closeAllConnections();
  await new Promise((resolve) => hostile.close(resolve));
});

test('doctor distinguishes another server from one that does not answer', async () => {
  const other = createServer((_request, response) => response.writeHead(302, { location: '/login' }).end('<html>'));
  await new Promise<void>((resolve) => other.listen(0, '127.0.0.1', resolve));
  const { port } = other.address() as { port: number };
  const cli = await cliAt('other-server', { BERTH_HOST: `http://127.0.0.1:${port}`, BERTH_TOKEN: 'home.x' });
  const message = "http://\\S+ does not answer as Berth's API";
  expect((await cli.run(['doctor'])).stdout).toMatch(new RegExp(`^error +platform: ${message}`, 'm'));
  await new Promise((resolve) => other.close(resolve));
  expect((await cli.run(['doctor'])).stdout).toMatch(/^error +platform: No response from /m);
});

test('whoami lists the accounts of all pages', async () => {
  const pages = createServer(({ url: path = '' }, response) => {
    const isFirst = !path.includes('cursor=');
    const accounts = [{ name: isFirst ? 'acme' : 'zoo', role: 'owner' }];
    response.setHeader('content-type', 'application/json');
    response.end(JSON.stringify({ accounts, ...(isFirst && { next_cursor: 'more' }) }));
  });
  await new Promise<void>((resolve) => pages.listen(0, '127.0.0.1', resolve));
  const { port } = pages.address() as { port: number };
  const cli = await cliAt('pages', { BERTH_HOST: `http://127.0.0.1:${port}`, BERTH_TOKEN: 'secret' });
  expect(await cli.json('whoami')).toMatchObject({ accounts: [{ name: 'acme' }, { name: 'zoo' }] });
  // Both accounts are known, so none of them is the default.
  expect((await cli.run(['service', 'list'])).stderr).toContain('valid for the accounts acme, zoo');
  await new Promise((resolve) => pages.close(resolve));
});

test('a reader that closes the pipe early is no error', async () => {
  const cli = await cliAt('pipe', { BERTH_TOKEN: api.token });
  const env = { ...cli.env, HOME: cli.home };
  const line = `${process.execPath} ${cli.program} --help; exit 0`;
  expect(await runCommand('sh', ['-c', `(${line}) | head -n 1`], { env })).toMatch(/^Usage: berth/);
});

test('signals end a command with the exit code of shells, also while it waits for a platform', async () => {
  const silent = createServer(() => {});
  await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve));
  const { port } = silent.address() as { port: number };
  const cli = await cliAt('signals', { BERTH_HOST: `http://127.0.0.1:${port}`, BERTH_TOKEN: 'home.x' });
  for (const [signal, code] of [
    ['SIGINT', 130],
    ['SIGTERM', 143],
  ] as const) {
    const requested = new Promise((resolve) => silent.once('request', resolve));
    const running = cli.start(['service', 'list']);
    await requested;
    running.kill(signal);
    expect(await running.done).toMatchObject({
      code,
      stdout: '',
      stderr: expect.stringContaining(`Stopped by ${signal}`),
    });
  }
  silent.closeAllConnections();
  await new Promise((resolve) => silent.close(resolve));
});

test('a download that breaks off or is stopped leaves no part of an archive, and an older file as it was', async () => {
  const digest = `sha256:${'a'.repeat(64)}`;
  const image = { digest, tag: 'latest', pushed_at: new Date().toISOString(), git_commit: null };
  const archives: ServerResponse[] = [];
  const server = createServer((request, response) => {
    if (!request.url?.endsWith('/archive')) {
      response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ images: [image] }));
      return;
    }
    response.writeHead(200, { 'content-type': 'application/x-tar', 'content-length': 1_000_000 });
    response.write(Buffer.alloc(1_000));
    archives.push(response);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as { port: number };
  const cli = await cliAt('downloads', { BERTH_HOST: `http://127.0.0.1:${port}`, BERTH_TOKEN: 'home.x' });
  const file = join(cli.home, 'draw.tar');
  await writeFile(file, 'older');
  const parts = async () => (await readdir(cli.home)).filter((name) => name.endsWith('.part'));
  for (const [stop, code, message] of [
    [(running: RunningProgram) => running.kill('SIGINT'), 130, 'Stopped by SIGINT'],
    [() => archives.at(-1)?.destroy(), 1, 'The download failed'],
  ] as const) {
    const running = cli.start(['image', 'pull', 'home/draw', '--output', 'draw.tar']);
    await vi.waitFor(async () => expect(await parts()).toHaveLength(1), { timeout: 30_000 });
    stop(running);
    const { stderr, ...result } = await running.done;
    expect(result).toEqual({ code, stdout: '' });
    expect(stderr).toContain(message);
    expect(stderr).not.toContain('    at ');
    expect([await readFile(file, 'utf8'), await parts()]).toEqual(['older', []]);
  }
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
});

test('of several backends, all are stopped, also if one has ended', async () => {
  const cli = await loggedIn('stops');
  const [ended, running] = await Promise.all(
    ['a', 'b'].map(async () => (await cli.json<{ backend_id: string }>('connect', 'draw')).backend_id),
  );
  await cli.ok('backend', 'stop', ended!);
  expect(await cli.run(['backend', 'stop', ended!, running!])).toMatchObject({
    code: 1,
    stderr: expect.stringMatching(new RegExp(`${running} is terminating[^]*Error: Backend "${ended}" has ended`)),
  });
  expect(await cli.ok('backend', 'info', running!)).toMatch(/terminated/);
});

test('completion prints scripts and candidates', async () => {
  const cli = await cliAt('completion');
  expect(await cli.ok('complete', '--', 'service', 's')).toBe('settings\nstop-all\n');
  expect(await cli.ok('complete', '--', 'connect', 'draw', '--k')).toBe('--key\n');
  const script = join(folder, 'berth.bash');
  await writeFile(script, await cli.ok('completion', 'bash'));
  const complete = `PATH="${folder}:$PATH"; . "${script}"; COMP_WORDS=(berth environment c); COMP_CWORD=2; _berth; echo "\${COMPREPLY[@]}"`;
  await writeFile(join(folder, 'berth'), `#!/bin/sh\nexec "${process.execPath}" "${program}" "$@"\n`, { mode: 0o755 });
  expect(await runCommand('bash', ['-c', complete])).toBe('create\n');
  expect(await cli.run(['completion', 'tcsh'])).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('Allowed choices are bash, zsh, fish'),
  });
});

test('commands that need the server fail in the published package, and their help says so', async () => {
  const cli = await cliAt('server');
  const commands = [
    'dev --host ::1',
    'start',
    'serve',
    'registry gc --dry-run',
    'registry verify',
    'collect',
    'admin quota',
  ];
  for (const args of commands.map((each) => each.split(' '))) {
    expect(await cli.run(args)).toMatchObject({ code: 1, stderr: expect.stringContaining('has no server') });

    const help = await cli.ok(...args, '--help');
    expect(help.replaceAll(/\s+/g, ' ')).toContain('Runs only in a checkout or a container of Berth.');
  }
});

test('the help of a command lists each option once', async () => {
  const cli = await cliAt('options');
  expect((await cli.ok('dev', '--help')).match(/--host/g)).toHaveLength(1);
});

test('the help lists all commands, each with a description', async () => {
  const cli = await cliAt('table');
  const help = await cli.ok('--help');
  const names =
    'login logout whoami push connect logs backend service environment image token node registry admin doctor';
  const server = 'dev start serve';
  for (const name of `${names} ${server} completion`.split(' ')) {
    expect(help).toMatch(new RegExp(`^  ${name}(?:\\|\\w+)?(?: \\S+)* {2,}\\w`, 'm'));
  }
  for (const name of server.split(' ')) {
    expect(help.replaceAll(/\s+/g, ' ')).toMatch(new RegExp(` ${name} [^)]*\\(in a checkout of Berth\\)`));
  }
  expect(await cli.ok('complete', '--', 'd')).toBe('doctor\ndev\n');
  expect(await cli.ok('complete', '--', 'dev', '--b')).toBe('--build-arg\n');
});

test('berth dev parses exactly the options that its help lists', () => {
  const { stdin, stdout, stderr } = process;
  const session = new Session({ env: {}, stdin, stdout, stderr, cwd: '/' }, new AbortController().signal);
  const listed = devCommand(session).options.map(({ long, short }) => `${short?.slice(1) ?? ''} ${long}`);
  const parsed = Object.entries(devOptions).map(([name, option]) => {
    const isOn = 'default' in option && option.default;
    return `${'short' in option ? option.short : ''} --${isOn || name === 'watch' ? 'no-' : ''}${name}`;
  });
  // Every command has --json.
  expect(listed.toSorted()).toEqual(parsed.filter((name) => name !== ' --json').toSorted());
});
