import { describe, expect, it } from 'vitest';
import { logPosition, maxLineBytes } from '../../contract/backend-streams.ts';
import { LogFrames } from '../docker/log-frames.ts';
import type { LogEntry } from '../docker/log-frames.ts';
import { LogLines, LogReplays } from './log-lines.ts';

/** A frame as the engine sends it. */
function frame(text: string | Buffer, { second = 0, source = 1 } = {}): Buffer {
  const time = `2026-01-01T00:00:${String(second).padStart(2, '0')}.123456789Z `;
  const payload = Buffer.concat([Buffer.from(time), Buffer.from(text)]);
  const head = Buffer.alloc(8);
  head[0] = source;
  head.writeUInt32BE(payload.length, 4);
  return Buffer.concat([head, payload]);
}

function linesOf(...frames: Buffer[]): string[] {
  return recordsOf(frames).map(({ line }) => line);
}

function recordsOf(frames: readonly Buffer[]) {
  const lines = new LogLines();
  const entries = new LogFrames().add(Buffer.concat(frames));
  return [...lines.add(entries), ...lines.end()];
}

describe('LogFrames', () => {
  it('parses the same entries wherever the log is cut', () => {
    const bytes = Buffer.concat([
      frame('grüße 🙂\n'),
      frame('', { source: 2 }),
      frame('\n'),
      frame('more', { second: 59 }),
    ]);
    const whole = new LogFrames().add(bytes);
    expect(whole.map(({ source, text, endsLine }) => [source, text.toString(), endsLine])).toEqual([
      ['stdout', 'grüße 🙂', true],
      ['stderr', '', false],
      ['stdout', '', true],
      ['stdout', 'more', false],
    ]);
    expect(whole.map(({ time }) => time)).toEqual([
      ...Array<string>(3).fill('1767225600.123456789'),
      '1767225659.123456789',
    ]);
    for (let size = 1; size < 12; size += 1) {
      const frames = new LogFrames();
      const entries: LogEntry[] = [];
      for (let at = 0; at < bytes.length; at += size) entries.push(...frames.add(bytes.subarray(at, at + size)));
      expect(entries).toEqual(whole);
    }
  });
});

describe('LogLines', () => {
  it('joins a line that the engine has cut in the middle of a character', () => {
    const smile = Buffer.from('🙂');
    expect(linesOf(frame(smile.subarray(0, 2)), frame(Buffer.concat([smile.subarray(2), Buffer.from('\n')])))).toEqual([
      '🙂',
    ]);
  });

  it('keeps the two streams apart, even if one writes in the middle of a line of the other', () => {
    const frames = [frame('out '), frame('error\n', { source: 2 }), frame('and more\n')];
    expect(linesOf(...frames)).toEqual(['error', 'out and more']);
  });

  it('ends with an unfinished line', () => {
    expect(linesOf(frame('one\n'), frame('two'))).toEqual(['one', 'two']);
    expect(linesOf(frame('one\r\n'), frame('\r\n'), frame('a\rb\n'))).toEqual(['one', '', 'a\rb']);
  });

  it('splits lines longer than 64 KiB, and no others', () => {
    const exact = 'a'.repeat(maxLineBytes);
    expect(linesOf(frame(`${exact}\n`))).toEqual([exact]);
    expect(linesOf(frame(`${exact}b\n`))).toEqual([exact, 'b']);
    const parts = Array.from({ length: 64 }, () => frame('0123456789abcdef'.repeat(1024)));
    expect(linesOf(...parts, frame('\n')).map(({ length }) => length)).toEqual(Array<number>(16).fill(maxLineBytes));
  });

  it('splits between characters, and binary data at the limit', () => {
    const pieces = linesOf(frame(`a${'🙂'.repeat(maxLineBytes / 4)}\n`));
    expect(pieces.map((piece) => Buffer.byteLength(piece))).toEqual([maxLineBytes - 3, 4]);
    expect(pieces.join('')).not.toContain('\ufffd');
    expect(linesOf(frame(Buffer.alloc(maxLineBytes + 1, 0x80)))).toHaveLength(2);
  });

  it('assigns increasing positions to lines, the same whenever the log is read', () => {
    const log = [
      frame('one\n', { second: 10 }),
      frame('earlier\n', { second: 9, source: 2 }),
      frame('same time\n', { second: 10 }),
      frame(`${'x'.repeat(2 * maxLineBytes + 1)}\n`, { second: 11 }),
      frame('last\n', { second: 12 }),
    ];
    const places = recordsOf(log).map(({ at }) => at);
    expect(places).toEqual([...new Set(places)].sort());
    expect(places).toHaveLength(7);
    for (const place of places) expect(logPosition.safeParse(place).success).toBe(true);
    // Entries that the engine omits do not change later positions.
    expect(recordsOf(log.slice(3)).map(({ at }) => at)).toEqual(places.slice(3));
  });
});

describe('LogReplays', () => {
  it('drops entries that an engine repeats, and no entries of the other stream', () => {
    const sent = [1, 2, 2, 3].map((second) => frame(`${second}\n`, { second }));
    const other = frame('other\n', { second: 2, source: 2 });
    const entries = new LogFrames().add(Buffer.concat([...sent, other, ...sent, frame('4\n', { second: 4 })]));
    const replays = new LogReplays();
    const kept = entries.filter((entry) => replays.isNew(entry)).map(({ text }) => text.toString());
    expect(kept).toEqual(['1', '2', '2', '3', 'other', '4']);
  });
});
