// Takes about 7 s
/** The commands by which people and process managers start Berth. */
import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { runCommand, tryCommand } from './command.ts';

const root = join(import.meta.dirname, '..');
const berth = join(root, 'bin/berth');

let folder: string;

/** The processes that a test has started, each the leader of its process group. */
const started: ChildProcess[] = [];

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'berth-scripts-test-'));
});
afterEach(async () => {
  for (const { pid } of started.splice(0)) endGroup(pid);
  await rm(folder, { recursive: true });
});

/** Kills the processes of a failed test. */
function endGroup(leader: number | undefined): void {
  try {
    if (leader !== undefined) process.kill(-leader, 'SIGKILL');
  } catch {
    // All processes have ended.
  }
}

function start(program: string, args: readonly string[], cwd: string, more: NodeJS.ProcessEnv = {}): ChildProcess {
  const env = { ...environment(), ...more };
  const child = spawn(program, args, { cwd, env, detached: true, stdio: ['ignore', 'pipe', 'pipe'] });
  started.push(child);
  return child;
}

/** The environment of a separate platform without an engine, which starts fastest, and without the user's own settings. */
function environment(): NodeJS.ProcessEnv {
  const ports = ['API', 'REGISTRY', 'PROXY', 'OPERATIONS'].map((name) => [`BERTH_${name}_PORT`, '0']);
  const { PATH, HOME } = process.env;
  const data = { BERTH_DATA_FOLDER: join(folder, 'data'), DOCKER_HOST: `unix://${folder}/no-engine.sock` };
  return { PATH, HOME, ...data, ...Object.fromEntries(ports) };
}

/** The line that `--json` writes when everything is open. */
async function announced(child: ChildProcess): Promise<{ api_url: string; token_file: string }> {
  if (!child.stdout) throw new Error('The process has no standard output');
  for await (const line of createInterface({ input: child.stdout })) if (line.startsWith('{')) return JSON.parse(line);
  throw new Error('The process ended before it was open');
}

test('npm start shuts down in order when a process manager sends SIGTERM to npm', async () => {
  const npm = start('npm', ['start', '--json'], root);
  let output = '';
  npm.stderr?.setEncoding('utf8').on('data', (chunk: string) => (output += chunk));
  const { api_url: apiUrl } = await announced(npm);
  expect((await fetch(apiUrl)).status).toBe(404);
  // `close` is emitted when no process has the output open. A platform that outlived npm would keep it open.
  const closed = once(npm, 'close');
  npm.kill('SIGTERM');
  await closed;
  expect(output).toContain('Stopping.');
  await expect(fetch(apiUrl)).rejects.toThrow('fetch failed');
});

test('without a Docker Engine, npm start first prints what to do about it, and its log contains no token', async () => {
  const child = start(berth, ['start', '--json'], folder);
  let output = '';
  child.stderr?.setEncoding('utf8').on('data', (chunk: string) => (output += chunk));
  const { token_file: tokenFile } = await announced(child);
  const closed = once(child, 'close');
  child.kill('SIGTERM');
  await closed;
  // On a busy machine, lines of progress precede it.
  expect(output).toMatch(
    /^(?:(?:Compiling|Opening|✓ Opening) .*\n)*\s*No session could be started. No Docker Engine answers at DOCKER_HOST .*: start it there/,
  );
  expect(output).not.toContain('{');
  expect(output).toContain(`in ${tokenFile}`);
  expect(output).not.toContain((await readFile(tokenFile, 'utf8')).trim());
});

test('all sources are compiled in a separate process before the first start', async () => {
  const child = start(berth, ['start', '--json'], folder, {
    NODE_COMPILE_CACHE: join(folder, 'cache'),
    NODE_DEBUG_NATIVE: 'COMPILE_CACHE',
  });
  let output = '';
  child.stderr?.setEncoding('utf8').on('data', (chunk: string) => (output += chunk));
  await announced(child);
  const closed = once(child, 'close');
  child.kill('SIGTERM');
  await closed;
  // setup/compile.mjs lists the modules that programs import dynamically.
  expect(output.match(/no transpile cache for StrippedTypeScript \S+/g)).toBeNull();
  // Threads write concurrently, so one line may contain another. A start loads more than 200 sources.
  const found = output.match(/retrieving transpile cache for StrippedTypeScript \S+/g);
  expect(found?.length).toBeGreaterThan(200);
});

test('every npm script that prepares the folder first replaces its shell with exec', async () => {
  const { scripts } = JSON.parse(await readFile(join(root, 'package.json'), 'utf8')) as {
    scripts: Record<string, string>;
  };
  const starting = Object.values(scripts).filter((script) => /setup\/run|bin\/berth/.test(script));
  expect(starting).toHaveLength(9);
  for (const script of starting) expect(script).toMatch(/^exec [^&|;]+$/);
});

test('bin/berth runs from any folder and through a symbolic link', async () => {
  await symlink(berth, join(folder, 'linked'));
  for (const program of [berth, join(folder, 'linked')]) {
    expect(await runCommand(program, ['--help'], { cwd: folder })).toContain('Usage: berth [options] [command]');
    const { code, stderr } = await tryCommand(program, ['serve', '--role', 'api'], { cwd: folder });
    expect([code, stderr]).toEqual([2, expect.stringContaining('Usage: berth dev')]);
  }
  // The help of a command is the same, whether cli/ or main/ runs it.
  for (const command of ['start', 'dev', 'serve']) {
    const help = await runCommand(berth, [command, '--help'], { cwd: folder });
    const words = new RegExp(`^Usage: berth ${command} .*only in a checkout or a container of Berth`);
    expect(help.replaceAll(/\s+/g, ' ')).toMatch(words);
  }
});

test('bin/berth replaces itself with the platform, so that a signal to it shuts the platform down in order', async () => {
  const child = start(berth, ['serve', '--json'], folder);
  child.stderr?.resume();
  await announced(child);
  const exited = once(child, 'exit');
  child.kill('SIGTERM');
  expect(await exited).toEqual([0, null]);
});
