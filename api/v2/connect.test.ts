import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { backends } from '../../model/backend.ts';
import { connectPath, digestOf, openTestApi } from '../testing/test-api.ts';
import type { TestApi } from '../testing/test-api.ts';

let api: TestApi;
beforeAll(async () => void (api = await openTestApi()));
afterAll(async () => await api[Symbol.asyncDispose]());

describe('a connect request', () => {
  test('applies its spawn config', async () => {
    const { body } = await api.post(connectPath, {
      user: 'Zoë',
      auth: { role: 'ädmin' },
      spawn: {
        tag: digestOf('a'),
        max_idle_seconds: 7,
        lifetime_limit_seconds: 70,
        executable: {
          env: { GREETING: 'hello' },
          resource_limits: { memory_limit_bytes: 64 << 20, cpu_period_percent: 50, cpu_time_limit: 9 },
        },
      },
    });
    expect(await api.store.get(backends, body.backend_id)).toMatchObject({
      maxIdleSeconds: 7,
      lifetimeLimitSeconds: 70,
      imageDigest: digestOf('a'),
      env: { GREETING: 'hello' },
      limits: { memoryBytes: 64 << 20, cpuPeriodPercent: 50, cpuPeriodMicroseconds: 100_000, cpuTimeSeconds: 9 },
    });
  });

  test.each([
    ['an unknown field', { spwan: {} }, 'spwan: There is no such field'],
    [
      'an unknown nested field',
      { spawn: { executable: { privileged: true } } },
      'spawn.executable.privileged: There is no such field',
    ],
    ['an empty key', { key: '' }, 'key: Empty'],
    ['a key of 129 characters', { key: '🚢'.repeat(129) }, 'key: Too long'],
    ['a key with a control character', { key: 'a\u0007b' }, 'key: Control'],
    ['a lone surrogate', { key: '\ud800' }, 'key: Not well-formed'],
    ['a fraction of a second', { spawn: { max_idle_seconds: 1.5 } }, 'spawn.max_idle_seconds'],
    ['a negative time', { spawn: { lifetime_limit_seconds: -1 } }, 'spawn.lifetime_limit_seconds'],
    ['more than the platform allows', { spawn: { max_idle_seconds: 1001 } }, 'spawn.max_idle_seconds: At most 1000'],
    [
      'more memory than the platform allows',
      { spawn: { executable: { resource_limits: { memory_limit_bytes: 16 * 1024 ** 3 + 1 } } } },
      'spawn.executable.resource_limits.memory_limit_bytes: At most 17179869184',
    ],
    ['a reserved variable', { spawn: { executable: { env: { PORT: '1' } } } }, 'spawn.executable.env.PORT'],
    ['a variable that is not a text', { spawn: { executable: { env: { A: 1 } } } }, 'spawn.executable.env.A'],
    ['a user with a line break', { user: 'a\r\nx-verified-secret: b' }, 'user: Control'],
    ['a user that is too long', { user: 'ü'.repeat(513) }, 'user: Too long'],
    ['auth that is too large', { auth: { a: 'x'.repeat(9000) } }, 'auth: Too large'],
    ['auth that is not an object', { auth: ['a'] }, 'auth'],
    ['a list as the body', [1], 'The body'],
  ])('rejects %s, and names it', async (_what, body, message) => {
    const { status, body: answer } = await api.post(connectPath, body);
    expect([status, answer.error.code]).toEqual([400, 'BadRequest']);
    expect(answer.error.message).toContain(message);
  });

  test.each(['a\u0000b', 'a\r\nb', '\u007F', '\u0085'])('rejects the key %j for its control character', async (key) => {
    const { status, body } = await api.post(connectPath, { key });
    expect([status, body.error.message]).toEqual([400, 'key: Control characters are not allowed']);
  });

  test('does not normalize keys: similar keys are different, and no key is a path', async () => {
    const names = [
      'cafe',
      'caf\u00E9',
      'cafe\u0301',
      'c\u0430fe',
      'cafe\u200F',
      '\u202Eefac',
      'CAFE',
      'cafe ',
      'a/b',
      '../cafe',
      '__proto__',
    ];
    const connectAll = async () =>
      await Promise.all(names.map(async (key) => (await api.post(connectPath, { key })).body.backend_id as string));
    const ids = await connectAll();
    expect(new Set(ids).size).toBe(names.length);
    expect(await connectAll()).toEqual(ids);
    const keys = await Promise.all(ids.map(async (id) => (await api.store.get(backends, id))?.key));
    expect(keys).toEqual(names);
  });

  test('accepts a key of 128 characters in any language', async () => {
    expect((await api.post(connectPath, { key: '🚢'.repeat(128) })).status).toBe(200);
  });
});
