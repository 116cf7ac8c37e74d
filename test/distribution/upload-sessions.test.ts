/** end-4, end-13, end-14: upload sessions, which survive the process that started them. */
import { randomBytes } from 'node:crypto';
import { expect, test } from 'vitest';
import { sha256 } from '../kit/registry/registry.ts';
import { onAllRegistries } from './fixture.ts';

onAllRegistries((fixture) => {
  test('a session has a relative location with a UUID, and its answers contain its offset', async () => {
    const repository = fixture.repository();
    const answer = await repository.send('blobs/uploads/', { method: 'POST' });
    const location = String(answer.headers.location);
    const id = location.slice(repository.path('blobs/uploads/').length);
    expect(id).toMatch(/^[a-f0-9]{8}-[a-f0-9]{4}-[a-f0-9]{4}-[a-f0-9]{4}-[a-f0-9]{12}$/);
    // Also for an empty session: docker rejects both `0--1` and a missing range.
    const headers = { location: repository.path(`blobs/uploads/${id}`), range: '0-0', 'docker-upload-uuid': id };
    expect([answer.status, answer.headers['content-length']]).toEqual([202, '0']);
    expect(answer.headers).toMatchObject(headers);
    const status = await repository.send(location);
    expect([status.status, status.headers['content-length']]).toEqual([204, undefined]);
    expect(status.headers).toMatchObject(headers);
    const patched = await repository.patch(location, 'x');
    expect(patched.headers).toMatchObject({ ...headers, range: '0-0' });
    expect((await repository.patch(location, 'yz')).headers.range).toBe('0-2');
  });

  test('a path without the last slash also starts a session', async () => {
    const repository = fixture.repository();
    expect((await repository.send('blobs/uploads', { method: 'POST' })).status).toBe(202);
  });

  test('two sessions are independent', async () => {
    const repository = fixture.repository();
    const [one, two] = [await repository.begin(), await repository.begin()];
    expect(one).not.toBe(two);
    await repository.patch(one, 'one');
    await repository.patch(two, 'number two');
    expect((await repository.finish(two, sha256('number two'))).status).toBe(201);
    expect((await repository.finish(one, sha256('one'))).status).toBe(201);
  });

  test('a session continues after a restart of every process, at any time', async () => {
    const repository = fixture.repository();
    const bytes = randomBytes(90_000);
    const location = await repository.begin();
    for (const start of [0, 30_000, 60_000]) {
      await fixture.registry.restart();
      const status = await repository.send(location);
      expect([status.status, status.headers.range]).toEqual([204, `0-${Math.max(0, start - 1)}`]);
      const chunk = bytes.subarray(start, start + 30_000);
      expect((await repository.patch(location, chunk, `${start}-${start + 29_999}`)).status).toBe(202);
    }
    await fixture.registry.restart();
    expect((await repository.finish(location, sha256(bytes))).status).toBe(201);
    expect((await repository.send(`blobs/${sha256(bytes)}`)).body.equals(bytes)).toBe(true);
  });

  test('cancelling a session deletes its bytes', async () => {
    const repository = fixture.repository();
    const location = await repository.begin();
    await repository.patch(location, 'given up');
    const cancelled = await repository.send(location, { method: 'DELETE', headers: { 'content-length': 0 } });
    expect([cancelled.status, cancelled.body.length]).toEqual([204, 0]);
    expect(await fixture.registry.blobs.statUpload(location.split('/').at(-1) ?? '')).toBeUndefined();
    expect((await repository.finish(location, sha256('given up'))).code).toBe('BLOB_UPLOAD_UNKNOWN');
  });

  test.each(['never begun', 'cancelled', 'finished', 'of another repository'])(
    'a session that was %s is unknown',
    async (how) => {
      const repository = fixture.repository();
      const other = fixture.repository();
      let location = await (how === 'of another repository' ? other : repository).begin();
      if (how === 'never begun') location = location.replace(/[^/]+$/, '00000000-0000-4000-8000-000000000000');
      if (how === 'cancelled') await repository.send(location, { method: 'DELETE' });
      if (how === 'finished') await repository.finish(location, sha256('done'), { body: 'done' });
      if (how === 'of another repository') location = location.replace(other.name, repository.name);
      for (const method of ['GET', 'PATCH', 'DELETE', 'PUT']) {
        const path = method === 'PUT' ? `${location}?digest=${sha256('')}` : location;
        const answer = await repository.send(path, { method });
        expect([method, answer.status, answer.code]).toEqual([method, 404, 'BLOB_UPLOAD_UNKNOWN']);
      }
    },
  );
});
