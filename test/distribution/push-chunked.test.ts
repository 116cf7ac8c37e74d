/** end-4a, end-5, end-6: pushes of a blob in chunks, which must arrive in order. */
import { randomBytes } from 'node:crypto';
import { Readable } from 'node:stream';
import { expect, test } from 'vitest';
import { sha256 } from '../kit/registry/registry.ts';
import { onAllRegistries } from './fixture.ts';

onAllRegistries((fixture) => {
  test.each([1, 2, 5])('%i chunks, and an empty PUT', async (count) => {
    const repository = fixture.repository();
    const bytes = randomBytes(count * 60_000);
    let location = await repository.begin();
    for (let start = 0; start < bytes.length; start += 60_000) {
      const end = start + 59_999;
      const answer = await repository.patch(location, bytes.subarray(start, end + 1), `${start}-${end}`);
      expect([answer.status, answer.headers.range]).toEqual([202, `0-${end}`]);
      location = String(answer.headers.location);
    }
    const put = await repository.finish(location, sha256(bytes));
    expect(put.status).toBe(201);
    expect((await repository.send(String(put.headers.location))).body.equals(bytes)).toBe(true);
  });

  test('accepts the last chunk in the PUT', async () => {
    const repository = fixture.repository();
    const location = await repository.begin();
    await repository.patch(location, 'first', '0-4');
    const put = await repository.finish(location, sha256('firstlast'), {
      headers: { 'content-range': '5-8' },
      body: 'last',
    });
    expect(put.status).toBe(201);
  });

  test('accepts a stream without lengths or ranges, as docker sends it', async () => {
    const repository = fixture.repository();
    const bytes = randomBytes(300_000);
    const location = await repository.begin();
    const patched = await repository.patch(location, Readable.from([bytes.subarray(0, 7), bytes.subarray(7)]));
    expect([patched.status, patched.headers.range]).toEqual([202, '0-299999']);
    expect((await repository.finish(location, sha256(bytes))).status).toBe(201);
  });

  test('rejects a chunk out of order, and the session continues', async () => {
    const repository = fixture.repository();
    const location = await repository.begin();
    const expectRejected = async (range: string, body: string, kept: string) => {
      const answer = await repository.patch(location, body, range);
      expect([range, answer.status, answer.code]).toEqual([range, 416, 'BLOB_UPLOAD_INVALID']);
      expect([answer.headers.location, answer.headers.range]).toEqual([location, kept]);
      const status = await repository.send(location);
      expect([status.status, status.headers.range]).toEqual([204, kept]);
    };
    await expectRejected('3-5', 'def', '0-0');
    expect((await repository.patch(location, 'abc', '0-2')).status).toBe(202);
    // Ahead, behind, overlapping, and backwards.
    await expectRejected('6-8', 'ghi', '0-2');
    await expectRejected('0-2', 'abc', '0-2');
    await expectRejected('2-5', 'cdef', '0-2');
    await expectRejected('5-3', 'def', '0-2');
    expect((await repository.patch(location, 'def', '3-5')).status).toBe(202);
    expect((await repository.finish(location, sha256('abcdef'))).status).toBe(201);
  });

  test('rejects a PUT out of order', async () => {
    const repository = fixture.repository();
    const location = await repository.begin();
    await repository.patch(location, 'abc', '0-2');
    const digest = sha256('abcdef');
    const finish = async (range: string) =>
      await repository.finish(location, digest, { headers: { 'content-range': range }, body: 'def' });
    const rejected = await finish('9-11');
    expect([rejected.status, rejected.headers.range]).toEqual([416, '0-2']);
    expect((await repository.send(location)).status).toBe(204);
    expect((await finish('3-5')).status).toBe(201);
  });

  test.each(['bytes 0-2', 'bytes 0-2/3', '0-', '-2', 'a-b', '0-2-4', '0-99999999999999999999', ' ', '0x0-2'])(
    'rejects the malformed Content-Range "%s"',
    async (range) => {
      const repository = fixture.repository();
      const location = await repository.begin();
      const answer = await repository.patch(location, 'abc', range);
      expect([answer.status, answer.code]).toEqual([400, 'BLOB_UPLOAD_INVALID']);
      expect((await repository.send(location)).status).toBe(204);
    },
  );

  test.each([
    ['a length that differs from its range', 'abc', '0-9'],
    ['less than its range', Readable.from([Buffer.from('abc')]), '0-9'],
    ['more than its range', Readable.from([Buffer.from('abcdefgh')]), '0-2'],
  ])('a chunk of %s is rejected, and the session continues', async (_name, body, range) => {
    const repository = fixture.repository();
    const location = await repository.begin();
    const answer = await repository.patch(location, body, range);
    expect([answer.status, answer.code]).toEqual([400, 'SIZE_INVALID']);
    const { headers } = await repository.send(location);
    const next = headers.range === '0-0' ? 0 : Number(String(headers.range).split('-')[1]) + 1;
    const rest = 'abcdefghij'.slice(next);
    expect((await repository.patch(location, rest, `${next}-9`)).status).toBe(202);
    expect((await repository.finish(location, sha256('abcdefghij'))).status).toBe(201);
  });
});
