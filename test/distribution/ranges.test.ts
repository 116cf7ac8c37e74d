/** end-2 with `Range` (RFC 9110, section 14), by which clients continue a pull and read in parallel. */
import { expect, test } from 'vitest';
import type { Answer } from '../kit/registry/registry.ts';
import { onAllRegistries } from './fixture.ts';

onAllRegistries((fixture) => {
  const content = '0123456789';

  test.each([
    ['the beginning', 'bytes=0-3', '0123', '0-3'],
    ['the middle', 'bytes=2-4', '234', '2-4'],
    ['one byte', 'bytes=9-9', '9', '9-9'],
    ['from a byte to the end', 'bytes=7-', '789', '7-9'],
    ['the whole blob, as a range', 'bytes=0-', content, '0-9'],
    ['to beyond the end', 'bytes=5-500', '56789', '5-9'],
    ['to far beyond the end', 'bytes=5-99999999999999999999999', '56789', '5-9'],
    ['the last bytes', 'bytes=-3', '789', '7-9'],
    ['more last bytes than the blob has', 'bytes=-300', content, '0-9'],
  ])('%s', async (_name, range, body, contentRange) => {
    const repository = fixture.repository();
    const { digest } = await repository.blob(content);
    const answer = await repository.send(`blobs/${digest}`, { headers: { range } });
    expect([answer.status, answer.body.toString()]).toEqual([206, body]);
    expect(answer.headers).toMatchObject({
      'content-range': `bytes ${contentRange}/10`,
      'content-length': String(body.length),
      'docker-content-digest': digest,
      'accept-ranges': 'bytes',
    });
  });

  test.each(['bytes=10-', 'bytes=500-600', 'bytes=5-0', 'bytes=500-0', 'bytes=-0', 'bytes=99999999999999999999999-'])(
    '%s selects nothing',
    async (range) => {
      const repository = fixture.repository();
      const { digest } = await repository.blob(content);
      const answer = await repository.send(`blobs/${digest}`, { headers: { range } });
      expect([answer.status, answer.headers['content-range']]).toEqual([416, 'bytes */10']);
    },
  );

  test.each([
    ['bytes=0-1,4-5', { 'bytes 0-1/10': '01', 'bytes 4-5/10': '45' }],
    ['bytes= 0-0 , 3-3\t, -1', { 'bytes 0-0/10': '0', 'bytes 3-3/10': '3', 'bytes 9-9/10': '9' }],
    ['bytes=2-4,7-', { 'bytes 2-4/10': '234', 'bytes 7-9/10': '789' }],
    ['bytes=0-2,8-500,600-', { 'bytes 0-2/10': '012', 'bytes 8-9/10': '89' }],
  ])('%s returns several parts in one answer', async (range, expected) => {
    const repository = fixture.repository();
    const { digest } = await repository.blob(content);
    const answer = await repository.send(`blobs/${digest}`, { headers: { range } });
    expect([answer.status, answer.headers['content-length']]).toEqual([206, String(answer.body.length)]);
    expect(answer.headers).toMatchObject({ 'docker-content-digest': digest, 'accept-ranges': 'bytes' });
    expect(answer.headers['content-range']).toBeUndefined();
    expect(Object.fromEntries(partsOf(answer))).toEqual(expected);
  });

  test('several ranges, of which one or none is satisfiable', async () => {
    const repository = fixture.repository();
    const { digest } = await repository.blob(content);
    const get = async (range: string) => await repository.send(`blobs/${digest}`, { headers: { range } });
    const one = await get('bytes=20-30,7-8,40-');
    expect([one.status, one.headers['content-range'], one.body.toString()]).toEqual([206, 'bytes 7-8/10', '78']);
    const none = await get('bytes=10-11,20-30');
    expect([none.status, none.headers['content-range']]).toEqual([416, 'bytes */10']);
  });

  test('returns the missing parts of a large blob, up to the number that podman requests at once', async () => {
    const repository = fixture.repository();
    const bytes = Buffer.from(Array.from({ length: 1_500_000 }, (_, at) => (at * 7) % 253));
    const { digest } = await repository.blob(bytes);
    const ranges = Array.from({ length: 1_024 }, (_, at) => [at * 1_400, at * 1_400 + 900 + (at % 7)] as const);
    const rangeOf = (some: typeof ranges) => `bytes=${some.map(([start, end]) => `${start}-${end}`).join(',')}`;
    const answer = await repository.send(`blobs/${digest}`, { headers: { range: rangeOf(ranges) } });
    expect(answer.status).toBe(206);
    const parts = partsOf(answer, 'latin1');
    expect(parts.map(([range]) => range)).toEqual(ranges.map(([start, end]) => `bytes ${start}-${end}/1500000`));
    const whole = bytes.toString('latin1');
    expect(parts.every(([, part], at) => part === whole.slice(ranges[at]?.[0], Number(ranges[at]?.[1]) + 1))).toBe(
      true,
    );
    // After this error, podman and stargz request fewer parts at a time.
    const tooMany = rangeOf([...ranges, [1_499_000, 1_499_001]]);
    const more = await repository.send(`blobs/${digest}`, { headers: { range: tooMany } });
    expect([more.status, more.code]).toEqual([400, 'UNSUPPORTED']);
  });

  // A server may ignore ranges that it does not support.
  test.each([
    'lines=1-2',
    'bytes=a-b',
    'bytes=-',
    'bytes',
    'bytes=1-2;3-4',
    'bytes=1-2,',
    'bytes=1-2,x',
    // Overlapping or descending ranges indicate a broken or malicious client (RFC 9110, section 14.2).
    'bytes=0-5,5-7',
    'bytes=4-5,0-1',
    'bytes=0-0,0-0',
  ])('%s returns the whole blob', async (range) => {
    const repository = fixture.repository();
    const { digest } = await repository.blob(content);
    const answer = await repository.send(`blobs/${digest}`, { headers: { range } });
    expect([answer.status, answer.body.toString()]).toEqual([200, content]);
  });

  test('HEAD returns the size of the whole blob, and an empty blob has no ranges', async () => {
    const repository = fixture.repository();
    const { digest } = await repository.blob(content);
    const head = await repository.send(`blobs/${digest}`, { method: 'HEAD', headers: { range: 'bytes=0-3' } });
    expect([head.status, head.headers['content-length']]).toEqual([200, '10']);
    const empty = await repository.blob('');
    const answer = await repository.send(`blobs/${empty.digest}`, { headers: { range: 'bytes=0-' } });
    expect([answer.status, answer.headers['content-range']]).toEqual([416, 'bytes */0']);
  });

  test('a range of a blob that differs from `If-Range` returns the whole blob', async () => {
    const repository = fixture.repository();
    const { digest } = await repository.blob(content);
    const get = async (ifRange: string) =>
      (await repository.send(`blobs/${digest}`, { headers: { range: 'bytes=2-4', 'if-range': ifRange } })).status;
    expect(await get(`"${digest}"`)).toBe(206);
    expect(await get('"sha256:other"')).toBe(200);
  });

  test('parts that are read in parallel form the whole blob', async () => {
    const repository = fixture.repository();
    const bytes = Buffer.from(Array.from({ length: 700_000 }, (_, at) => at % 251));
    const { digest } = await repository.blob(bytes);
    const starts = Array.from({ length: 7 }, (_, at) => at * 100_000);
    const parts = await Promise.all(
      starts.map(async (start) => {
        const range = `bytes=${start}-${start + 99_999}`;
        return (await repository.send(`blobs/${digest}`, { headers: { range } })).body;
      }),
    );
    expect(Buffer.concat(parts).equals(bytes)).toBe(true);
  });
});

/** The parts of a `multipart/byteranges` answer: the range of each, and its bytes. */
function partsOf({ headers, body }: Answer, encoding: 'utf8' | 'latin1' = 'utf8'): [string, string][] {
  const [, boundary = ''] =
    /^multipart\/byteranges; boundary=([0-9a-f]{32})$/.exec(headers['content-type'] ?? '') ?? [];
  const [preamble, ...parts] = body.toString(encoding).split(`\r\n--${boundary}`);
  expect([preamble, parts.pop()]).toEqual(['', '--\r\n']);
  return parts.map((part) => {
    const [, range = 'none', bytes = ''] =
      /^\r\ncontent-type: application\/octet-stream\r\ncontent-range: ([^\r]+)\r\n\r\n(.*)$/s.exec(part) ?? [];
    return [range, bytes];
  });
}
