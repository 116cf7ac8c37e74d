// Takes about 15 s
import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { chmod, copyFile, mkdtemp, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { arch, tmpdir, uptime } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { afterAll, describe, expect, test } from 'vitest';

interface Build {
  readonly name: 'amd64' | 'arm64';
  /** The emulator that runs it; none if the machine has this architecture. */
  readonly emulator: readonly string[];
}

/** When leases end for which a test waits. A busy machine starts a program and writes a file in less time. */
const soonMs = 5_000;

const folders: string[] = [];

afterAll(async () => {
  await Promise.all(folders.map((folder) => rm(folder, { recursive: true })));
});

/** The build for another architecture is tested if an emulator, which takes 400 MB, is installed. */
const builds: Build[] = [
  ...buildFor('amd64', 'x64', '/usr/bin/qemu-x86_64-static'),
  ...buildFor('arm64', 'arm64', '/usr/bin/qemu-aarch64-static'),
];

for (const build of builds) {
  describe(`init for ${build.name}`, () => {
    test.each([
      ['of the program', ['sh', '-c', 'exit 7'], 7],
      ['of a program that a signal killed', ['sh', '-c', 'kill -9 $$'], 137],
      ['127 for a program that does not exist', ['no-such-program'], 127],
      ['127 for a path that does not exist', ['/no/such/program'], 127],
      ['126 for a file that is not executable', ['/etc/passwd'], 126],
      ['126 for a folder', ['/etc'], 126],
    ])('exits with the code %s', async (_what, program, code) => {
      const init = await start(build, program);
      expect(await ended(init)).toMatchObject({ code, signal: null });
    });

    test('finds a program by a path relative to the working folder', async () => {
      const folder = await newFolder();
      await writeFile(join(folder, 'program'), '#!/bin/sh\necho from $0\n', { mode: 0o755 });
      const init = await start(build, ['./program'], { cwd: folder });
      expect(await ended(init)).toMatchObject({ code: 0, stdout: 'from ./program\n' });
    });

    test('passes arguments, environment, descriptors and signal state on unchanged', async () => {
      const look = [
        'sh',
        '-c',
        'printf "%s|" "$@"; env | sort; ls /proc/self/fd; grep "^Sig[BIC]" /proc/self/status',
        'x',
      ];
      const [program, ...rest] = [...look, '', 'a b', '--', '-c'];
      const env = { PATH: process.env['PATH'], ONE: 'two words' };
      const direct = spawn(program ?? '', rest, { env, stdio: ['ignore', 'pipe', 'pipe'] });
      const alone = await text(direct.stdout);
      const init = await start(build, [program ?? '', ...rest], { env });
      expect((await ended(init)).stdout).toBe(alone);
    });

    test.each(['SIGTERM', 'SIGINT', 'SIGHUP', 'SIGUSR1', 'SIGQUIT', 'SIGWINCH', 34, 37, 64] as const)(
      'forwards signal %s',
      async (signal) => {
        const name = typeof signal === 'number' ? signal : signal.slice('SIG'.length);
        const trap = `trap "echo got; exit 3" ${name}; echo up; while :; do sleep 0.05; done`;
        const init = await start(build, ['bash', '-c', trap]);
        await init.said('up');
        if (typeof signal === 'number') await once(spawn('kill', [`-${signal}`, String(init.child.pid)]), 'exit');
        else init.child.kill(signal);
        expect(await ended(init)).toMatchObject({ code: 3, stdout: 'up\ngot\n' });
      },
    );

    test.concurrent('reaps orphaned processes', async () => {
      const script = `orphan=$(sh -c 'sleep 0.1 > /dev/null & echo $!'); while test -e /proc/$orphan; do sleep 0.05; done; echo reaped`;
      const init = await start(build, ['sh', '-c', script]);
      expect(await ended(init)).toMatchObject({ stdout: 'reaped\n' });
    });

    test.concurrent('asks the program to stop with the signal of the lease when the lease was not renewed', async () => {
      const trap = 'trap "echo saved; exit 0" USR2; echo up; while :; do sleep 0.05; done';
      const init = await start(build, ['sh', '-c', trap], { lease: { softMs: soonMs, hardMs: 60_000, signal: 12 } });
      expect(await ended(init)).toMatchObject({ code: 0, stdout: 'up\nsaved\n' });
      expect(init.errors()).toContain('was not renewed');
    });

    test.concurrent('ends a program that does not stop when the lease ends', async () => {
      const init = await start(build, ['sh', '-c', 'trap "" TERM; echo up; while :; do sleep 0.05; done'], {
        lease: { softMs: soonMs, hardMs: soonMs + 400 },
      });
      expect(await ended(init)).toMatchObject({ code: 137, stdout: 'up\n' });
    });

    test.concurrent('ends a stopped program when the lease ends', async () => {
      const init = await start(build, ['sh', '-c', 'echo up; kill -STOP $$'], {
        lease: { softMs: soonMs, hardMs: soonMs + 300 },
      });
      expect(await ended(init)).toMatchObject({ code: 137, stdout: 'up\n' });
    });

    test.concurrent('lets a program run while its lease is renewed, and ends it when the renewals stop', async () => {
      const init = await start(build, ['sh', '-c', 'while :; do cat /proc/uptime; sleep 0.2; done'], {
        lease: { softMs: soonMs, hardMs: 60_000 },
      });
      const firstEnd = uptime() + soonMs / 1000;
      await init.renew({ softMs: 2 * soonMs, hardMs: 60_000 });
      const { code, stdout } = await ended(init);
      // SIGTERM, from the lease.
      expect(code).toBe(143);
      expect(Number(stdout.trimEnd().split('\n').at(-1)?.split(' ')[0])).toBeGreaterThan(firstEnd);
    });

    test.each([
      ['nothing', ''],
      ['half a line', '12 34'],
      ['no numbers', 'soft hard 15\n'],
      ['negative numbers', '-1 -1 15\n'],
      ['a number that does not fit', '99999999999999999999999 99999999999999999999999 15\n'],
      ['no signal', '1 1 0\n'],
      ['a signal that does not exist', '1 1 65\n'],
      ['more than a line', '1 1 15\n1 1 15\n'],
      ['too long a line', `${'0'.repeat(100)} 1 15\n`],
    ])('does not start a program whose lease file holds %s', async (_what, line) => {
      const init = await start(build, ['echo', 'started'], { line });
      expect(await ended(init)).toMatchObject({ code: 125, stdout: '' });
      expect(init.errors()).toContain('lease: Invalid argument');
    });

    test('does not start a program without a lease file', async () => {
      const init = await start(build, ['echo', 'started'], { line: undefined });
      expect(await ended(init)).toMatchObject({ code: 125, stdout: '' });
    });

    test('does not start a program whose lease has ended', async () => {
      const init = await start(build, ['echo', 'started'], { lease: { softMs: -1, hardMs: 30_000 } });
      expect(await ended(init)).toMatchObject({ code: 137, stdout: '' });
    });

    test('does not start a program whose lease was written by another clock', async () => {
      const init = await start(build, ['echo', 'started'], { lease: { softMs: 30_000, hardMs: 500_000 } });
      expect(await ended(init)).toMatchObject({ code: 125, stdout: '' });
      expect(init.errors()).toContain('is not the clock of its node');
    });

    test.concurrent('enforces the last lease that it could read', async () => {
      const init = await start(build, ['sh', '-c', 'trap "" TERM; echo up; while :; do sleep 0.05; done'], {
        lease: { softMs: soonMs, hardMs: soonMs + 500 },
      });
      await init.said('up');
      await init.write('garbage\n');
      expect(await ended(init)).toMatchObject({ code: 137 });
    });
  });
}

describe('init', () => {
  const native = builds.find(({ emulator }) => emulator.length === 0);

  test.runIf(native && process.getuid?.() === 0)(
    'as process 1 ends every process of the container, whatever user it runs as',
    async () => {
      const script =
        'setsid setpriv --reuid 12345 --clear-groups sleep 1017 & trap "" TERM; echo up; while :; do sleep 0.05; done';
      const init = await start(native as Build, ['sh', '-c', script], {
        lease: { softMs: soonMs, hardMs: soonMs + 500 },
        before: ['unshare', '--pid', '--fork', '--mount-proc', '--kill-child'],
      });
      expect(await ended(init)).toMatchObject({ code: 137 });
      expect(await outputOf('pgrep', ['-f', 'sleep 1017'])).toBe('');
    },
  );

  test.runIf(native)('uses less than a megabyte of memory', async () => {
    const init = await start(native as Build, ['sh', '-c', 'echo up; read -r line']);
    await init.said('up');
    const status = await readFile(`/proc/${init.child.pid}/status`, 'utf8');
    expect(Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1])).toBeLessThan(1024);
    expect(Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1])).toBeGreaterThan(0);
    init.child.kill('SIGKILL');
  });
});

interface Lease {
  /** From now. */
  readonly softMs: number;
  readonly hardMs: number;
  readonly signal?: number;
}

interface StartOptions {
  readonly lease?: Lease;
  /** The content of the lease file in place of a lease. `undefined`: no file. */
  readonly line?: string | undefined;
  readonly cwd?: string;
  readonly env?: NodeJS.ProcessEnv;
  /** A program that starts the init. */
  readonly before?: readonly string[];
}

interface StartedInit {
  readonly child: ChildProcess;
  readonly output: Promise<string>;
  readonly errors: () => string;
  /** Resolves when the program has written this line. */
  readonly said: (line: string) => Promise<void>;
  readonly renew: (lease: Lease) => Promise<void>;
  readonly write: (line: string) => Promise<void>;
}

async function start(build: Build, program: readonly string[], options: StartOptions = {}): Promise<StartedInit> {
  const folder = await newFolder();
  const path = join(folder, 'init');
  await copyFile(join(import.meta.dirname, `init-${build.name}`), path);
  await chmod(path, 0o755);
  const write = async (line: string) => {
    await writeFile(join(folder, 'next'), line);
    await rename(join(folder, 'next'), join(folder, 'lease'));
  };
  if (!('line' in options)) await write(leaseLine(options.lease ?? { softMs: 60_000, hardMs: 90_000 }));
  else if (options.line !== undefined) await write(options.line);
  const [command = '', ...args] = [...(options.before ?? []), ...build.emulator, path, ...program];
  const child = spawn(command, args, {
    stdio: ['pipe', 'pipe', 'pipe'],
    ...(options.cwd !== undefined && { cwd: options.cwd }),
    ...(options.env && { env: options.env }),
  });
  let errors = '';
  let output = '';
  const closed = once(child, 'close');
  child.stderr.setEncoding('utf8').on('data', (chunk: string) => (errors += chunk));
  child.stdout.setEncoding('utf8').on('data', (chunk: string) => (output += chunk));
  return {
    child,
    output: closed.then(() => output),
    errors: () => errors,
    said: async (line) => {
      const closedEarly = closed.then(() => Promise.reject(new Error(`It ended without "${line}"`)));
      closedEarly.catch(() => {});
      while (!output.includes(`${line}\n`)) await Promise.race([once(child.stdout, 'data'), closedEarly]);
    },
    renew: async (lease) => await write(leaseLine(lease)),
    write,
  };
}

async function ended({ child, output }: StartedInit) {
  const stdout = await output;
  return { code: child.exitCode, signal: child.signalCode, stdout };
}

function leaseLine({ softMs, hardMs, signal = 15 }: Lease): string {
  const nowMs = Math.floor(uptime() * 1000);
  return `${nowMs + softMs} ${nowMs + hardMs} ${signal}\n`;
}

async function newFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'berth-init-'));
  folders.push(folder);
  return folder;
}

function buildFor(name: Build['name'], machine: string, emulator: string): Build[] {
  if (arch() === machine) return [{ name, emulator: [] }];
  return existsSync(emulator) ? [{ name, emulator: [emulator] }] : [];
}

async function outputOf(program: string, args: readonly string[]): Promise<string> {
  return await text(spawn(program, args, { stdio: ['ignore', 'pipe', 'ignore'] }).stdout);
}
