/** end-4a and end-6, end-4b: pushes of a whole blob. */
import { randomBytes } from 'node:crypto';
import { Readable } from 'node:stream';
import { expect, test } from 'vitest';
import type { Answer } from '../kit/registry/registry.ts';
import { sha256, sha512 } from '../kit/registry/registry.ts';
import { onAllRegistries, types } from './fixture.ts';
import type { Repository } from './fixture.ts';

/** The ways to push a whole blob. */
const ways = {
  'POST, then PUT': async (repository: Repository, digest: string, body: Buffer) =>
    await repository.finish(await repository.begin(), digest, { body, headers: { 'content-type': types.octets } }),
  'POST, then PUT without a length or a type': async (repository: Repository, digest: string, body: Buffer) =>
    await repository.finish(await repository.begin(), digest, { body: Readable.from([body]) }),
  'a single POST': async (repository: Repository, digest: string, body: Buffer) =>
    await repository.send(`blobs/uploads/?digest=${digest}`, {
      method: 'POST',
      headers: { 'content-type': types.octets },
      body,
    }),
  'a single POST without a length': async (repository: Repository, digest: string, body: Buffer) =>
    await repository.send(`blobs/uploads/?digest=${digest}`, { method: 'POST', body: Readable.from([body]) }),
} satisfies Record<string, (repository: Repository, digest: string, body: Buffer) => Promise<Answer>>;

onAllRegistries((fixture) => {
  test.each(Object.entries(ways))('%s', async (_name, push) => {
    const repository = fixture.repository();
    for (const bytes of [Buffer.from('in one piece'), Buffer.from('{}'), Buffer.alloc(0), randomBytes(400_000)]) {
      const pushed = await push(repository, sha256(bytes), bytes);
      expect(pushed.status).toBe(201);
      expect(pushed.headers['docker-content-digest']).toBe(sha256(bytes));
      const pulled = await repository.send(String(pushed.headers.location));
      expect([pulled.status, pulled.body.equals(bytes)]).toEqual([200, true]);
    }
  });

  test.each(Object.entries(ways))('%s: content with another digest is rejected and not stored', async (_name, push) => {
    const repository = fixture.repository();
    for (const digest of [sha256('this'), sha512('this')]) {
      const answer = await push(repository, digest, Buffer.from('that'));
      expect([answer.status, answer.code]).toEqual([400, 'DIGEST_INVALID']);
      expect((await repository.send(`blobs/${digest}`)).status).toBe(404);
      expect((await repository.send(`blobs/${sha256('that')}`)).status).toBe(404);
    }
  });

  test.each([
    ['no digest', ''],
    ['a short digest', 'sha256:abc'],
    ['a digest in upper case', sha256('x').toUpperCase().replace('SHA256', 'sha256')],
    ['an unsupported algorithm', `md5:${'a'.repeat(32)}`],
    ['an unknown algorithm', `sha999:${'a'.repeat(64)}`],
    ['a path', 'sha256:../../../etc/passwd'],
  ])('%s is rejected', async (_name, digest) => {
    const repository = fixture.repository();
    for (const push of [ways['POST, then PUT'], ways['a single POST']]) {
      const answer = await push(repository, digest, Buffer.from('x'));
      expect([answer.status, answer.code]).toEqual([400, 'DIGEST_INVALID']);
    }
  });

  test('accepts an escaped digest, and the same blob twice', async () => {
    const repository = fixture.repository();
    await repository.blob('twice');
    const location = await repository.begin();
    const escaped = sha256('twice').replace(':', '%3A');
    const answer = await repository.send(`${location}?digest=${escaped}`, { method: 'PUT', body: 'twice' });
    expect(answer.status).toBe(201);
    expect((await repository.send(`blobs/${escaped}`)).body.toString()).toBe('twice');
  });

  test('concurrent pushes of the same blob all succeed', async () => {
    const repository = fixture.repository();
    const bytes = randomBytes(200_000);
    const pushes = Object.values(ways).flatMap((push) => [push, push]);
    const answers = await Promise.all(pushes.map(async (push) => await push(repository, sha256(bytes), bytes)));
    expect(answers.map(({ status }) => status)).toEqual(pushes.map(() => 201));
    expect((await repository.send(`blobs/${sha256(bytes)}`)).body.equals(bytes)).toBe(true);
  });
});
