import { expect, test } from 'vitest';
import { newReport } from './report.ts';
import type { DevEvent } from './report.ts';

function written(event: DevEvent, json = false): string[] {
  const lines: string[] = [];
  newReport((line) => lines.push(line), json)(event);
  return lines;
}

test('a failed build shows the last lines of its output', () => {
  const lines = Array.from({ length: 30 }, (_, i) => `line ${i}`);
  const shown = written({ event: 'build-failed', problem: 'docker build failed', lines });
  expect(shown).toEqual(['Build failed: docker build failed', ...lines.slice(10).map((line) => `  ${line}`)]);
});

test('text from containers cannot control the terminal', () => {
  expect(written({ event: 'log', backend: 'abc', line: '\u001b[31mred\u001b[0m\u0007\r\tx\u202e' })).toEqual([
    String.raw`abc | red\u000d	x\u202e`.replace('red', String.raw`red\u0007`),
  ]);
});

test('a status has the key, the reason and the exit code', () => {
  const details = 'key "a", exit code 1';
  const event = { event: 'backend', backend: 'abc', key: 'a', status: 'terminated', details } as const;
  expect(written(event)).toEqual(['abc terminated (key "a", exit code 1)']);
  expect(written(event, true).map((line) => JSON.parse(line) as unknown)).toEqual([event]);
});
