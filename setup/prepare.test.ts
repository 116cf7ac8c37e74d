// Takes about 3 s
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { cp, mkdir, mkdtemp, readFile, rm, symlink, utimes, writeFile } from 'node:fs/promises';
import { hostname, tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, expect, test } from 'vitest';

const here = fileURLToPath(new URL('.', import.meta.url));

let folder: string;

/** A separate project, whose npm is a script that records each call and creates the same files as npm. */
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'berth-prepare-test-'));
  await mkdir(join(folder, 'setup'));
  await mkdir(join(folder, 'tools'));
  for (const name of ['run', 'prepare.mjs']) await cp(join(here, name), join(folder, 'setup', name));
  await writeFile(join(folder, 'package.json'), '{"type":"module"}');
  await writeLock('1.0.0');
  await writeFile(
    join(folder, 'hello.ts'),
    'const words: string[] = process.argv.slice(2);\nconsole.log(words.join("|"));\n',
  );
  await symlink(process.execPath, join(folder, 'tools/node'));
  await writeNpm('sleep 0.3; mkdir -p node_modules; cp package-lock.json node_modules/.package-lock.json');
});

afterEach(async () => await rm(folder, { recursive: true }));

test('installs the lock file once, and passes on arguments and the exit code', async () => {
  const first = await run(['hello.ts', 'a', 'b c']);
  expect(first).toMatchObject({ code: 0, stdout: 'a|b c\n' });
  expect(first.stderr).toContain('Installing the dependencies');
  const second = await run(['hello.ts']);
  expect(second).toMatchObject({ code: 0, stderr: '' });
  expect(await calls()).toBe(1);
  expect((await run(['missing.ts'])).code).toBe(1);
});

test('installs again when the lock file has changed, not when npm was run manually', async () => {
  await run(['hello.ts']);
  await writeLock('1.0.1');
  await run(['hello.ts']);
  expect(await calls()).toBe(2);
  await writeLock('1.0.2');
  await cp(join(folder, 'package-lock.json'), join(folder, 'node_modules/.package-lock.json'));
  expect((await run(['hello.ts'])).code).toBe(0);
  expect(await calls()).toBe(2);
});

test('compiles the sources before a long-running program, again when one has changed, and not for other programs', async () => {
  for (const name of ['contract', 'core', 'model', 'registry', 'api', 'worker', 'proxy', 'client', 'main'])
    await mkdir(join(folder, name));
  await cp(join(folder, 'hello.ts'), join(folder, 'main/berth.ts'));
  const stamp = `${process.version} ${join(folder, 'setup')}`;
  const compiler = `import { appendFileSync, writeFileSync } from 'node:fs';
    appendFileSync('compiled', 'x');
    writeFileSync(process.env.NODE_COMPILE_CACHE + '/berth-compiled', '${stamp}');`;
  await writeFile(join(folder, 'setup/compile.mjs'), compiler);
  const compiled = async () => (await readFile(join(folder, 'compiled'), 'utf8').catch(() => '')).length;
  await mkdir(join(folder, 'node_modules/.cache/compile'), { recursive: true });
  await run(['hello.ts']);
  expect(await compiled()).toBe(0);
  expect((await run(['main/berth.ts', 'a'])).stdout).toBe('a\n');
  await run(['main/berth.ts']);
  expect(await compiled()).toBe(1);
  const later = new Date(Date.now() + 10_000);
  await utimes(join(folder, 'main/berth.ts'), later, later);
  await run(['hello.ts']);
  expect(await compiled()).toBe(1);
  await run(['main/berth.ts']);
  expect(await compiled()).toBe(2);
});

test('of several processes at once, one installs and the others wait', async () => {
  const results = await Promise.all(['a', 'b', 'c'].map(async (word) => await run(['hello.ts', word])));
  expect(results.map(({ code, stdout }) => [code, stdout])).toEqual([
    [0, 'a\n'],
    [0, 'b\n'],
    [0, 'c\n'],
  ]);
  expect(await calls()).toBe(1);
});

test('a lock whose owner has died is taken over', async () => {
  const dead = spawn('true');
  await new Promise((resolve) => dead.once('exit', resolve));
  await mkdir(join(folder, '.berth/setup.lock'), { recursive: true });
  await writeFile(join(folder, '.berth/setup.lock/owner'), `${dead.pid} ${hostname()}`);
  expect((await run(['hello.ts', 'x'])).stdout).toBe('x\n');
});

test('a failure is reported in one sentence with the output of npm, and nothing is run', async () => {
  await writeNpm('echo "npm error the disk is full" >&2; exit 7');
  const { code, stdout, stderr } = await run(['hello.ts']);
  expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
  expect(stderr).toContain('Installing the dependencies failed (npm ended with 7)');
  expect(stderr).toContain('npm error the disk is full');
  await writeNpm('mkdir -p node_modules; cp package-lock.json node_modules/.package-lock.json');
  expect((await run(['hello.ts', 'x'])).stdout).toBe('x\n');
});

test('a registry that does not answer causes an early error', async () => {
  await writeNpm(
    'while :; do echo "npm http fetch GET http://r/x attempt 1 failed with ECONNREFUSED" >&2; sleep 0.01; done',
  );
  expect(await run(['hello.ts'])).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('the registry does not answer') as string,
  });
});

test.each(['v8.17.0', 'v16.20.2'])(
  'Node %s is refused with a sentence that names the required version',
  async (version) => {
    await rm(join(folder, 'tools/node'));
    const old = `#!/bin/sh\n[ "$1" = --version ] && echo ${version} && exit\necho 'SyntaxError: Unexpected token' >&2\nexit 1\n`;
    await writeFile(join(folder, 'tools/node'), old, { mode: 0o755 });
    const { code, stderr } = await run(['hello.ts']);
    expect([code, stderr]).toEqual([
      1,
      expect.stringContaining(`Berth needs Node.js 18 or newer, and this is ${version}`),
    ]);
  },
);

test('a signal during an installation ends npm and the processes that wait for it', async () => {
  await writeNpm('echo $$ > npm-pid; exec sleep 60');
  const child = spawn('sh', ['setup/run', 'hello.ts'], { cwd: folder, env: environment(), stdio: 'ignore' });
  const exited = once(child, 'exit');
  const pid = await eventually(async () => Number(await readFile(join(folder, 'npm-pid'), 'utf8').catch(() => '')));
  child.kill('SIGTERM');
  expect(await exited).toEqual([143, null]);
  await eventually(async () => !(await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '')).includes(') S '));
});

/** Polls until the answer is truthy. */
async function eventually<Answer>(ask: () => Promise<Answer>): Promise<Answer> {
  for (let answer = await ask(); ; answer = await ask()) {
    if (answer) return answer;
    await setTimeout(10);
  }
}

async function writeLock(version: string): Promise<void> {
  const lock = { packages: { '': {}, 'node_modules/x': { version }, 'node_modules/y': { optional: true, version } } };
  await writeFile(join(folder, 'package-lock.json'), JSON.stringify(lock));
}

async function writeNpm(script: string): Promise<void> {
  await writeFile(join(folder, 'tools/npm'), `#!/bin/sh\necho "$@" >> calls\n${script}\n`, { mode: 0o755 });
}

async function calls(): Promise<number> {
  return (await readFile(join(folder, 'calls'), 'utf8')).trim().split('\n').length;
}

function environment() {
  return { PATH: `${join(folder, 'tools')}:/usr/bin:/bin` };
}

async function run(args: string[]): Promise<{ code: number | null; stdout: string; stderr: string }> {
  const child = spawn('sh', ['setup/run', ...args], {
    cwd: folder,
    env: environment(),
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let stdout = '';
  let stderr = '';
  child.stdout.setEncoding('utf8').on('data', (chunk: string) => (stdout += chunk));
  child.stderr.setEncoding('utf8').on('data', (chunk: string) => (stderr += chunk));
  const code = await new Promise<number | null>((resolve) => child.once('close', resolve));
  return { code, stdout, stderr };
}
