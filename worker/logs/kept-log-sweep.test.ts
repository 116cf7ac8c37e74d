import { mkdtemp, mkdir, readdir, rm, stat, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { LogRecord } from '../../contract/backend-streams.ts';
import { ManualClock } from '../../core/clock/testing/manual-clock.ts';
import { openLog, silentLog } from '../../core/log/log.ts';
import { KeptLogSweep } from './kept-log-sweep.ts';
import { KeptLogs } from './kept-logs.ts';

const never = new AbortController().signal;
const block = 4096;
const hourMs = 3_600_000;
let folder: string;
let clock: ManualClock;
/** The log lines about logs that were removed early. */
let logged: { msg: string; logs: number; bytes: number; limitBytes: number; writtenUntil: string }[];
let open: AsyncDisposableStack;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'berth-logs-'));
  // The clock is stopped, and files have the machine's time, which must not be in the future of the clock.
  clock = new ManualClock(new Date(Date.now() + hourMs));
  logged = [];
  open = new AsyncDisposableStack();
});
afterEach(async () => {
  await open.disposeAsync();
  await rm(folder, { recursive: true });
});

function openLogs(totalBytes: number): KeptLogs {
  const log = openLog('warn', { write: (line) => void logged.push(JSON.parse(line) as (typeof logged)[number]) });
  return new KeptLogs({ settings: { folder, maxBytes: 1024 * 1024, seconds: 24 * 3600, totalBytes }, clock, log });
}

/** Opens logs with regular sweeps, and waits for the first pass. */
async function openSwept(totalBytes: number): Promise<KeptLogs> {
  const logs = openLogs(totalBytes);
  open.use(logs.beginSweeping());
  await logs.sweep();
  return logs;
}

async function* logOf(bytes: number): AsyncGenerator<LogRecord[]> {
  yield [{ at: '1767225600.000000000-00000000', line: 'a'.repeat(bytes) }];
}

/** Keeps a log of one block or more. */
async function keep(logs: KeptLogs, backend: string, bytes = 100): Promise<void> {
  await logs.keep(backend, () => logOf(bytes), never);
}

/** Leaves a file of one block that was written this long ago. */
async function leave(name: string, agoMs: number): Promise<void> {
  const time = new Date(clock.now().getTime() - agoMs);
  await writeFile(join(folder, name), 'a log');
  await utimes(join(folder, name), time, time);
}

const kept = async () => (await readdir(folder)).sort();

async function takenBytes(): Promise<number> {
  const sizes = await Promise.all((await kept()).map(async (name) => (await stat(join(folder, name))).size));
  return sizes.reduce((sum, size) => sum + Math.ceil(size / block) * block, 0);
}

test('if there are too many logs, the oldest are removed, drafts included, and their number is logged', async () => {
  for (let i = 0; i < 20; i += 1) await leave(`log-${i}${i === 15 ? '.draft' : ''}`, i * 1_000);
  await mkdir(join(folder, 'no-log'));
  await openLogs(10 * block).sweep();
  const left = Array.from({ length: 9 }, (_, i) => `log-${i}`);
  expect(await kept()).toEqual([...left, 'no-log']);
  const writtenUntil = new Date(clock.now().getTime() - 9_000).toISOString();
  expect(logged).toEqual([
    expect.objectContaining({ level: 'warn', logs: 11, bytes: 11 * block, limitBytes: 10 * block, writtenUntil }),
  ]);
});

test('ages from seconds to days are distinguished', async () => {
  for (const [name, agoMs] of Object.entries({ now: 0, second: 1_000, hour: hourMs, day: 23 * hourMs })) {
    await leave(name, agoMs);
  }
  await openLogs(3 * block).sweep();
  expect(await kept()).toEqual(['now', 'second']);
});

test('logs within the limit stay, and without a limit all logs stay', async () => {
  for (let i = 0; i < 10; i += 1) await leave(`log-${i}`, 0);
  await openLogs(10 * block).sweep();
  await openLogs(0).sweep();
  expect(await kept()).toHaveLength(10);
  expect(logged).toEqual([]);
});

test('of logs with the same age, no more are removed than necessary', async () => {
  for (let i = 0; i < 50; i += 1) await leave(`log-${i}`, hourMs);
  await openLogs(20 * block).sweep();
  expect(await kept()).toHaveLength(18);
});

test('the limit holds between the regular passes, from the first log on, without a pass for each log', async () => {
  for (let i = 0; i < 95; i += 1) await leave(`before-${i}`, 2 * hourMs);
  const logs = await openSwept(100 * block);
  expect(await kept()).toHaveLength(95);
  for (let i = 0; i < 300; i += 1) {
    await keep(logs, `log-${i}`);
    expect(await kept()).toContain(`log-${i}`);
  }
  await logs.sweep();
  expect(await takenBytes()).toBeLessThanOrEqual(100 * block);
  // The latest logs, without a gap.
  const left = await kept();
  expect(left).toEqual(Array.from(left, (_, i) => `log-${299 - i}`).sort());
  expect(left.length).toBeGreaterThanOrEqual(90);
  // Each pass frees the space of ten or more.
  expect(logged.length).toBeLessThanOrEqual(31);
  expect(logged.reduce((sum, { logs: count }) => sum + count, 0)).toBe(395 - left.length);
});

test('a log that is being written is not removed, nor is its draft', async () => {
  for (const name of ['one', 'one.draft', 'other.draft']) await leave(name, 48 * hourMs);
  const sweep = new KeptLogSweep({
    settings: { folder, seconds: 24 * 3600, totalBytes: block },
    clock,
    log: silentLog(),
  });
  const writing = sweep.write('one', 100);
  await sweep.sweep();
  expect(await kept()).toEqual(['one', 'one.draft']);
  writing[Symbol.dispose]();
  await sweep.sweep();
  expect(await kept()).toEqual([]);
});

test('the limit holds if many logs are kept at once, however low it is, and no keep fails', async () => {
  const logs = await openSwept(block);
  await Promise.all(Array.from({ length: 200 }, (_, i) => keep(logs, `log-${i}`, i * 100)));
  await expect.poll(takenBytes).toBeLessThanOrEqual(block);
});

test('a log longer than the limit of all logs is kept in part', async () => {
  const logs = await openSwept(2 * block);
  await logs.keep(
    'one',
    async function* () {
      for (let i = 0; i < 5; i += 1) yield* logOf(3_000);
    },
    never,
  );
  expect(await takenBytes()).toBe(2 * block);
});

test('the log that was kept last stays, even after the clock was set back', async () => {
  // Written while the clock was ahead.
  for (let i = 0; i < 3; i += 1) await leave(`ahead-${i}`, -hourMs);
  clock = new ManualClock(new Date(Date.now() - 2 * hourMs));
  const logs = await openSwept(3 * block);
  await keep(logs, 'next');
  await expect.poll(kept).toHaveLength(2);
  expect(await kept()).toContain('next');
  for (const name of ['third', 'fourth', 'fifth']) {
    await keep(logs, name);
    expect(await kept()).toContain(name);
  }
  await expect.poll(takenBytes).toBeLessThanOrEqual(3 * block);
  expect((await kept()).filter((name) => name.startsWith('ahead'))).toEqual([]);
});

test('a single log that fills the limit stays until the next log is kept', async () => {
  const logs = await openSwept(block);
  for (const name of ['one', 'two', 'three']) {
    await keep(logs, name);
    await expect.poll(kept).toEqual([name]);
  }
});

test('a pass in progress ends when sweeping ends', async () => {
  for (let i = 0; i < 500; i += 1) await leave(`log-${i}`, i);
  const logs = openLogs(block);
  const sweeping = logs.beginSweeping();
  const pass = logs.sweep();
  await sweeping[Symbol.asyncDispose]();
  await expect(pass).rejects.toThrow('closing');
  expect(await kept()).toHaveLength(500);
  expect(logged).toEqual([]);
});
