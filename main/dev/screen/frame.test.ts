import { beforeEach, expect, test } from 'vitest';
import { Board } from './board.ts';
import { frameOf } from './frame.ts';
import type { View } from './frame.ts';

let board: Board;

beforeEach(() => {
  board = new Board();
  board.apply({ event: 'listening', url: 'http://localhost:8080' }, 0);
});

function shown(view: Partial<View> = {}): string[] {
  const { rows } = frameOf(board, { columns: 60, rows: 10, scroll: 0, nowMs: 0, ...view });
  return rows.map(({ text }) => text.trimEnd());
}

function ready(backend: string, key: string | null, atMs = 0): void {
  board.apply({ event: 'backend', backend, key, status: 'ready', details: '' }, atMs);
}

function logged(...lines: readonly string[]): void {
  for (const line of lines) board.apply({ event: 'log', backend: 'a', line }, 0);
}

test('shows the address, the image, backends with keys and connections, and the end of the log', () => {
  board.apply({ event: 'serving', digest: `sha256:${'a'.repeat(64)}`, seconds: 1.5 }, 0);
  ready('abc', 'room');
  ready('abcdef', null, 5_000);
  board.apply({ event: 'connections', backend: 'abc', open: 2 }, 0);
  expect(shown({ nowMs: 65_000, rows: 12 })).toEqual([
    'berth dev  http://localhost:8080  image aaaaaaaaaaaa, after',
    'BACKEND  KEY   STATUS  CONNECTIONS  FOR',
    'abcdef   -     ready   0            1 min',
    'abc      room  ready   2            1 min',
    '─'.repeat(60),
    'Listening on http://localhost:8080',
    'Serving sha256:aaaaaaaaaaaa after 1.5 s',
    'abc ready',
    'abcdef ready',
    '',
    '',
    'Ctrl-C: stop   ↑ ↓ PgUp PgDn: scroll   End: newest lines',
  ]);
});

test('a backend that has ended, or that was never reported, is not shown', () => {
  ready('abc', null);
  board.apply({ event: 'connections', backend: 'other', open: 1 }, 0);
  board.apply({ event: 'backend', backend: 'abc', key: null, status: 'terminated', details: 'exit code 1' }, 0);
  expect(shown()[1]).toMatch(/^No backends/);
  expect(shown()).toContain('abc terminated (exit code 1)');
});

test('backends that do not fit are counted, and long keys are truncated', () => {
  for (let i = 0; i < 20; i += 1) ready(`b${i}`, 'k'.repeat(40));
  const rows = shown();
  expect(rows[2]).toContain(`b19      ${'k'.repeat(30)}…`);
  expect(rows).toContain('and 18 more');
  expect(rows).toHaveLength(10);
});

test('long lines are wrapped, and text from containers cannot control the terminal', () => {
  logged(`\u001b[2J${'x'.repeat(70)}`, 'a\tb');
  expect(shown({ columns: 40 }).slice(4, 7)).toEqual([`a | ${'x'.repeat(36)}`, 'x'.repeat(34), 'a | a    b']);
});

test('scrolls up to the first line, and shows how many lines are below', () => {
  logged(...Array.from({ length: 50 }, (_, i) => `line ${i}`));
  expect(shown().slice(-2)).toEqual(['a | line 49', expect.stringContaining('Ctrl-C')]);
  expect(shown({ scroll: 3 }).slice(-2)).toEqual(['a | line 46', expect.stringMatching(/^3 lines below/)]);
  const top = frameOf(board, { columns: 60, rows: 10, scroll: Number.MAX_SAFE_INTEGER, nowMs: 0 });
  expect(top.rows[3]?.text).toBe('Listening on http://localhost:8080');
  expect(top.scroll).toBe(51 - top.logRows);
});

test.each([1, 2, 7, 8, 30])('fills a terminal with %d rows', (rows) => {
  ready('abc', 'room');
  const all = shown({ rows, columns: 20 });
  expect(all).toHaveLength(rows);
  expect(all.every((row) => row.length <= 20)).toBe(true);
  expect(all[0]).toBe('berth dev  http://lo');
});

test('a failed build is marked, and the log keeps its newest lines', () => {
  board.apply({ event: 'build-failed', problem: 'no such file', lines: ['a', 'b'] }, 0);
  expect(frameOf(board, { columns: 60, rows: 10, scroll: 0, nowMs: 0 }).rows[0]).toMatchObject({ style: 'problem' });
  logged(...Array.from({ length: 6_000 }, (_, i) => String(i)));
  expect(board.log.length).toBeLessThanOrEqual(5_000);
  expect(board.log.at(-1)?.text).toBe('a | 5999');
});
