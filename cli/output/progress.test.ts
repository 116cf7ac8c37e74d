import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { Progress } from './progress.ts';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

function opened(terminal: { isTTY: boolean; columns?: number; TERM?: string }) {
  const written: string[] = [];
  const { isTTY, columns = 80, TERM = 'xterm' } = terminal;
  const stderr = { isTTY, columns, write: (text: string) => void written.push(text) };
  const progress = new Progress({ stderr, env: { TERM } }, 'Uploading a');
  return { progress, written, bytes: progress.counter() };
}

test('draws a bar on one row of a terminal, at most ten times a second, and removes it at the end', () => {
  const { progress, written, bytes } = opened({ isTTY: true });
  progress.start(2048);
  progress.step('sha256:1');
  bytes.write(Buffer.alloc(512));
  vi.advanceTimersByTime(100);
  bytes.write(Buffer.alloc(512));
  progress.stop('Uploaded');
  expect(written).toEqual([
    `\r\u001b[K[${' '.repeat(24)}] 0 B of 2.0 KiB Uploading a `,
    `\r\u001b[K[${'='.repeat(12)}${' '.repeat(12)}] 1.0 KiB of 2.0 KiB Uploading a sha256:1`,
    '\r\u001b[K',
    'Uploaded: 1.0 KiB\n',
  ]);
});

test('leaves the last column free, because some terminals wrap there', () => {
  const { progress, written } = opened({ isTTY: true, columns: 30 });
  progress.start(2048);
  expect(written.join('').slice('\r\u001b[K'.length)).toHaveLength(29);
});

test.each([{ isTTY: false }, { isTTY: true, TERM: 'dumb' }])('prints a line every ten seconds with %j', (terminal) => {
  const { progress, written, bytes } = opened(terminal);
  progress.start(2048);
  bytes.write(Buffer.alloc(512));
  vi.advanceTimersByTime(10_000);
  bytes.write(Buffer.alloc(512));
  progress.stop('Uploaded');
  expect(written).toEqual(['Uploading a\n', 'Uploading a: 1.0 KiB of 2.0 KiB\n', 'Uploaded: 1.0 KiB\n']);
});
