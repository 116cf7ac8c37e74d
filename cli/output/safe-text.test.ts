import { expect, test } from 'vitest';
import { safeJson, safeLogLine, safeText } from './safe-text.ts';

test.each([
  ['plain text, ünïcode 🙂', 'plain text, ünïcode 🙂'],
  ['a\ttab', 'a\ttab'],
  ['two\nlines\r\n', String.raw`two\nlines\r\n`],
  ['\u001b]0;title\u0007', String.raw`\x1b]0;title\x07`],
  ['\u009b2J', String.raw`\x9b2J`],
  ['NUL \0, DEL \u007f', String.raw`NUL \x00, DEL \x7f`],
  ['right to left \u202egnp.exe', String.raw`right to left \u202egnp.exe`],
  ['\u2028', String.raw`\u2028`],
])('%j cannot control a terminal', (text, safe) => {
  expect(safeText(text)).toBe(safe);
});

test('a log line keeps its colours if colours are enabled, and resets them at its end', () => {
  const line = '\u001b[31mred\u001b[2J\u001b[0m plain';
  expect(safeLogLine(line, true)).toBe(`\u001b[31mred${String.raw`\x1b[2J`}\u001b[0m plain\u001b[0m`);
  expect(safeLogLine(line, false)).toBe(String.raw`red\x1b[2J plain`);
  expect(safeLogLine('nothing special', true)).toBe('nothing special');
});

test('JSON keeps its value, and contains no control characters', () => {
  const value = { text: '\u001b[2J \u009b2J \u202e \u007f "quoted" \\' };
  const json = safeJson(value);
  expect(JSON.parse(json)).toEqual(value);
  expect(json).not.toMatch(/[\p{Cc}\u202e]/u);
});
