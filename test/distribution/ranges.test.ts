/** end-2 with `Range` (RFC 9110, section 14): how pulls go on where they stopped, and how clients read in parallel. */
import { expect, test } from 'vitest';
import { onEveryGround } from './stage.ts';

onEveryGround((stage) => {
  const content = '0123456789';

  test.each([
    ['the beginning', 'bytes=0-3', '0123', '0-3'],
    ['the middle', 'bytes=2-4', '234', '2-4'],
    ['one byte', 'bytes=9-9', '9', '9-9'],
    ['from a byte on', 'bytes=7-', '789', '7-9'],
    ['the whole, as a range', 'bytes=0-', content, '0-9'],
    ['to beyond the end', 'bytes=5-500', '56789', '5-9'],
    ['to far beyond the end', 'bytes=5-99999999999999999999999', '56789', '5-9'],
    ['the last bytes', 'bytes=-3', '789', '7-9'],
    ['more last bytes than there are', 'bytes=-300', content, '0-9'],
  ])('%s', async (_name, range, body, contentRange) => {
    const repository = stage.repository();
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
    '%s asks for nothing that there is',
    async (range) => {
      const repository = stage.repository();
      const { digest } = await repository.blob(content);
      const answer = await repository.send(`blobs/${digest}`, { headers: { range } });
      expect([answer.status, answer.headers['content-range']]).toEqual([416, 'bytes */10']);
    },
  );

  // A server may ignore what it does not serve; clients that ask for several ranges take the whole.
  test.each(['bytes=0-1,4-5', 'bytes=0-0,-1', 'lines=1-2', 'bytes=a-b', 'bytes=-', 'bytes', 'bytes=1-2;3-4'])(
    '%s is answered with the whole',
    async (range) => {
      const repository = stage.repository();
      const { digest } = await repository.blob(content);
      const answer = await repository.send(`blobs/${digest}`, { headers: { range } });
      expect([answer.status, answer.body.toString()]).toEqual([200, content]);
    },
  );

  test('HEAD is of the whole, and an empty blob has no ranges', async () => {
    const repository = stage.repository();
    const { digest } = await repository.blob(content);
    const head = await repository.send(`blobs/${digest}`, { method: 'HEAD', headers: { range: 'bytes=0-3' } });
    expect([head.status, head.headers['content-length']]).toEqual([200, '10']);
    const empty = await repository.blob('');
    const answer = await repository.send(`blobs/${empty.digest}`, { headers: { range: 'bytes=0-' } });
    expect([answer.status, answer.headers['content-range']]).toEqual([416, 'bytes */0']);
  });

  test('a range of other bytes than the client has begun with is answered with the whole', async () => {
    const repository = stage.repository();
    const { digest } = await repository.blob(content);
    const get = async (ifRange: string) =>
      (await repository.send(`blobs/${digest}`, { headers: { range: 'bytes=2-4', 'if-range': ifRange } })).status;
    expect(await get(`"${digest}"`)).toBe(206);
    expect(await get('"sha256:other"')).toBe(200);
  });

  test('the parts of a large blob, read in parallel, are the blob', async () => {
    const repository = stage.repository();
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
