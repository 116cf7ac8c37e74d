import { describe, expect, test } from 'vitest';
import { readableLine } from './log-text.ts';

describe('a line of a log', () => {
  test.each([
    ['plain text, with Ünïcode 🚢', 'plain text, with Ünïcode 🚢'],
    ['\u001b[1;31merror\u001b[0m: no\u001b[2K', 'error: no'],
    ['\u001b]0;a title\u0007after', 'after'],
    ['\u001b]8;;https://example.com\u001b\\link\u001b]8;;\u001b\\', 'link'],
    ['10 %\r50 %\r100 %\r', '100 %'],
    ['a\tb', 'a\tb'],
    ['a\u0000b\u0008c\u009bd', 'a�b�c�d'],
    ['\u202egnp.exe\u2066', '�gnp.exe�'],
    ['zero\u200bwidth\u2028line', 'zero�width�line'],
    ['half \ud83d', 'half \ufffd'],
    ['', ''],
  ])('%j is shown as %j', (line, shown) => {
    expect(readableLine(line)).toBe(shown);
  });

  test('is cut when it is very long', () => {
    expect(readableLine('x'.repeat(60_000))).toBe(`${'x'.repeat(2000)}…`);
  });
});
