import { expect, test } from 'vitest';
import { MalformedBody } from './body.ts';
import { ChunkedBody } from './chunked-body.ts';

/** Reads a body in pieces of a length. Returns the forwarded text, and the number of bytes that belong to the body. */
function read(text: string, pieceBytes: number, isLenient = false) {
  const body = new ChunkedBody({ isLenient });
  let forwarded = '';
  let used = 0;
  for (let at = 0; at < text.length && !body.isComplete; at += pieceBytes) {
    const piece = Buffer.from(text.slice(at, at + pieceBytes), 'latin1');
    used += body.read(piece, (part) => void (forwarded += part.toString('latin1')));
  }
  return { forwarded, used, isComplete: body.isComplete };
}

const whole = '3\r\nabc\r\nA\r\n0123456789\r\n0\r\n\r\n';

test('a body is forwarded unchanged, in whatever pieces it arrives, without the bytes after it', () => {
  for (let pieceBytes = 1; pieceBytes <= whole.length + 4; pieceBytes += 1) {
    const result = read(`${whole}NEXT`, pieceBytes);
    expect(result).toEqual({ forwarded: whole, used: whole.length, isComplete: true });
  }
});

test.each([
  ['extensions', '3;a=b;c="d"\r\nabc\r\n0;x\r\n\r\n'],
  ['leading zeros', '0003\r\nabc\r\n000\r\n\r\n'],
])('%s are not forwarded', (_name, text) => {
  for (const pieceBytes of [1, 4, 100]) expect(read(text, pieceBytes).forwarded).toBe('3\r\nabc\r\n0\r\n\r\n');
});

test('trailers are forwarded without reserved ones', () => {
  const text = '0\r\nX-Sum: 1\r\nx-verified-username: me\r\nX-Last:  2 \r\n\r\n';
  for (const pieceBytes of [1, 5, 100]) {
    expect(read(text, pieceBytes)).toMatchObject({ forwarded: '0\r\nX-Sum: 1\r\nX-Last: 2\r\n\r\n', isComplete: true });
  }
});

test('trailers of a backend may end in a bare LF', () => {
  expect(read('0\r\nX-Sum: 1\n\n', 3, true).forwarded).toBe('0\r\nX-Sum: 1\r\n\r\n');
  expect(() => read('0\r\nX-Sum: 1\n\n', 3)).toThrow(MalformedBody);
});

test.each([
  '\r\n',
  ' 3\r\nabc\r\n',
  '3 \r\nabc\r\n',
  '+3\r\nabc\r\n',
  '-3\r\nabc\r\n',
  '0x3\r\nabc\r\n',
  '3\nabc\r\n',
  '3\r\nabc\n',
  '3\r\nabcd\r\n',
  '3\r\nabc\rx',
  'g\r\n',
  '3;\0\r\nabc\r\n',
  '10000000000000000\r\n',
  `${'0'.repeat(2_000)}3\r\n`,
  `3;${'x'.repeat(2_000)}\r\n`,
  `1;${'x'.repeat(1_000)}\r\na\r\n`.repeat(17),
  '0\r\nX : y\r\n\r\n',
  '0\r\nX: y\r\n z\r\n\r\n',
  '0\r\n: y\r\n\r\n',
  `0\r\n${'X: y\r\n'.repeat(101)}\r\n`,
  `0\r\nX: ${'y'.repeat(20_000)}\r\n\r\n`,
])('%j is malformed', (text) => {
  for (const pieceBytes of [1, 7, 100_000]) expect(() => read(text, pieceBytes)).toThrow(MalformedBody);
});
