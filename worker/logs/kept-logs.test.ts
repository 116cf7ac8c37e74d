import { mkdir, mkdtemp, readdir, rm, stat, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { LogRecord } from '../../contract/backend-streams.ts';
import { ManualClock } from '../../core/clock/testing/manual-clock.ts';
import { DiskReserve, ReserveError } from '../../core/files/disk-reserve.ts';
import { silentLog } from '../../core/log/log.ts';
import { KeptLogs } from './kept-logs.ts';

const never = new AbortController().signal;
const place = (index: number) => `1767225600.000000000-${String(index).padStart(8, '0')}`;
let folder: string;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'berth-logs-'));
});
afterEach(() => rm(folder, { recursive: true }));

const openLogs = (maxBytes = 1024 * 1024, clock = new ManualClock(new Date())) =>
  new KeptLogs({
    settings: { folder: join(folder, 'logs'), maxBytes, seconds: 60, totalBytes: 0 },
    clock,
    log: silentLog(),
  });

async function* logOf(count: number, line = 'a line'): AsyncGenerator<LogRecord[]> {
  for (let i = 0; i < count; i += 1) yield [{ at: place(i), line }];
}

async function linesOf(logs: KeptLogs, backend: string, after?: string): Promise<LogRecord[] | undefined> {
  const batches = await logs.read(backend, after);
  if (!batches) return undefined;
  const all: LogRecord[] = [];
  for await (const records of batches) all.push(...records);
  return all;
}

test('a kept log is read as a whole or after a position', async () => {
  const logs = openLogs();
  expect(await linesOf(logs, 'one')).toBeUndefined();
  await logs.keep('one', () => logOf(3, 'grüße\n🙂\u0000'), never);
  expect(await linesOf(logs, 'one')).toEqual([0, 1, 2].map((i) => ({ at: place(i), line: 'grüße\n🙂\u0000' })));
  expect(await linesOf(logs, 'one', place(1))).toEqual([{ at: place(2), line: 'grüße\n🙂\u0000' }]);
  expect(await linesOf(logs, 'one', place(2))).toEqual([]);
});

test('no log is kept in the space that is reserved for the store', async () => {
  const clock = new ManualClock();
  const reserve = new DiskReserve({ folder, reserveBytes: Number.MAX_SAFE_INTEGER, clock });
  const settings = { folder: join(folder, 'logs'), maxBytes: 1024, seconds: 60, totalBytes: 0 };
  const logs = new KeptLogs({ settings, clock, log: silentLog(), reserve });
  await expect(logs.keep('one', () => logOf(3), never)).rejects.toThrow(ReserveError);
  expect(await linesOf(logs, 'one')).toBeUndefined();
  expect(await readdir(join(folder, 'logs')).catch(() => [])).toEqual([]);
});

test('the last lines of a long log are kept, up to a limit', async () => {
  const logs = openLogs(10_000);
  await logs.keep('one', () => logOf(5_000), never);
  const { size } = await stat(join(folder, 'logs', 'one'));
  expect(size).toBeLessThanOrEqual(10_000);
  expect(size).toBeGreaterThan(9_900);
  expect((await linesOf(logs, 'one'))?.at(-1)?.at).toBe(place(4_999));
});

test('an empty log creates no file, and a kept log is not read again', async () => {
  const logs = openLogs();
  await logs.keep('empty', () => logOf(0), never);
  expect(await readdir(folder)).toEqual([]);
  await logs.keep('one', () => logOf(1), never);
  await logs.keep('one', () => logOf(9), never);
  expect(await linesOf(logs, 'one')).toHaveLength(1);
});

test('a draft of a killed worker is replaced by the whole log', async () => {
  const logs = openLogs();
  await logs.keep('before', () => logOf(1), never);
  // Left by a worker that died before the rename.
  await writeFile(join(folder, 'logs', 'one.draft'), '{"at":"half a rec'.repeat(1_000));
  expect(await linesOf(logs, 'one')).toBeUndefined();
  await logs.keep('one', () => logOf(2), never);
  expect(await linesOf(logs, 'one')).toHaveLength(2);
  expect((await readdir(join(folder, 'logs'))).sort()).toEqual(['before', 'one']);
});

test('a log that fails in the middle is not kept in part', async () => {
  const logs = openLogs();
  async function* broken(): AsyncGenerator<LogRecord[]> {
    yield* logOf(3);
    throw new Error('broken');
  }
  await expect(logs.keep('one', broken, never)).rejects.toThrow('broken');
  expect(await linesOf(logs, 'one')).toBeUndefined();
});

test('expired logs are removed, drafts included', async () => {
  const now = new Date();
  const logs = openLogs(undefined, new ManualClock(now));
  await logs.sweep();
  for (const backend of ['old', 'young']) await logs.keep(backend, () => logOf(1), never);
  await writeFile(join(folder, 'logs', 'dead.draft'), '');
  const longAgo = new Date(now.getTime() - 61_000);
  for (const name of ['old', 'dead.draft']) await utimes(join(folder, 'logs', name), longAgo, longAgo);
  await logs.sweep();
  expect(await readdir(join(folder, 'logs'))).toEqual(['young']);
});

test('a log that cannot be written leaves no draft', async () => {
  const logs = openLogs();
  // A file cannot replace a folder.
  const reading = async function* () {
    yield* logOf(1);
    await mkdir(join(folder, 'logs', 'one'), { recursive: true });
  };
  await expect(logs.keep('one', reading, never)).rejects.toThrow(/EISDIR|ENOTEMPTY/);
  expect(await readdir(join(folder, 'logs'))).toEqual(['one']);
});
