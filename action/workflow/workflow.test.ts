import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { Workflow } from './workflow.ts';

let folder: string;
let written: string;
let workflow: Workflow;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'berth-workflow-'));
  written = '';
  const output = join(folder, 'output');
  writeFileSync(output, '');
  workflow = new Workflow({ env: { GITHUB_OUTPUT: output, STATE_kept: 'a' }, write: (text) => (written += text) });
});
afterEach(() => rmSync(folder, { recursive: true }));

test('a value ends with a random delimiter, so its lines cannot end it', () => {
  workflow.setOutput('message', 'EOF\nEVIL=1');
  workflow.setOutput('message', 'two');
  const lines = readFileSync(join(folder, 'output'), 'utf8').split('\n');
  const [first, second] = [lines[0], lines[4]].map((line) => /^message<<(end-[0-9a-f-]{36})$/.exec(line ?? '')?.[1]);
  expect(lines).toEqual([`message<<${first}`, 'EOF', 'EVIL=1', first, `message<<${second}`, 'two', second, '']);
  expect(first).not.toBe(second);
});

test('a missing file causes an error that names the variable', () => {
  expect(() => workflow.saveState('a', 'b')).toThrow('GITHUB_STATE is not set');
  expect(() => workflow.summary('a')).not.toThrow();
  expect([workflow.state('kept'), workflow.state('other')]).toEqual(['a', '']);
});

test('an annotation is one command, with escaped line breaks', () => {
  workflow.error('100 %\n::error::second\r\u001b[31mred');
  expect(written).toBe('::error title=Berth::100 %25%0A::error::second%0D[31mred\n');
});

test('a log line cannot be a command', () => {
  workflow.info('a\n::add-mask::a\n  ::error::b\n##[error]c\r::warning::d\u001b[2J');
  for (const line of written.split('\n')) expect(line).not.toMatch(/^\s*::|##\[|\r/);
  expect(written).not.toContain('\u001b');
});

test('disables commands in the output of programs, and ends their last line', async () => {
  const code = await workflow.withoutCommands(async () => {
    written += 'no line end';
    return 7;
  });
  expect(code).toBe(7);
  expect(written).toMatch(/^::stop-commands::([0-9a-f-]{36})\nno line end\n::\1::\n$/);
  await expect(workflow.withoutCommands(async () => Promise.reject(new Error('broken')))).rejects.toThrow('broken');
  expect(written).toMatch(/::([0-9a-f-]{36})\n\n::\1::\n$/);
});
