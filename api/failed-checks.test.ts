import { expect, test } from 'vitest';
import { newSecret } from '../model/access-token.ts';
import { attemptBuckets } from '../model/attempts.ts';
import { FailureLimits } from '../model/failure-limits.ts';
import type { Store } from '../core/store/store.ts';
import { steered } from '../test/kit/ports/steered.ts';
import { openTestApi } from './testing/test-api.ts';
import type { TestApi } from './testing/test-api.ts';

const path = '/v2/service/acme/draw';

async function statusesOf(api: TestApi, times: number, address: string, newToken: () => string) {
  const statuses: number[] = [];
  for (let i = 0; i < times; i += 1) {
    const headers = { authorization: `Bearer ${newToken()}`, 'x-forwarded-for': address };
    statuses.push((await api.call('GET', path, { headers })).status);
  }
  return statuses;
}

test('a network that sends too many invalid tokens gets 429; its valid tokens, and other networks, do not', async () => {
  const now = new Date();
  const storeOf = (store: Store) => steered(store, { now: () => now });
  await using api = await openTestApi({ invalidTokensPerMinute: 3, behindLoadBalancer: true, storeOf });
  const statuses = async (address: string, newToken: () => string) => await statusesOf(api, 5, address, newToken);
  expect(await statuses('192.0.2.1', () => newSecret('access'))).toEqual([401, 401, 401, 429, 429]);
  expect(await statuses('192.0.2.1', () => 'no-token')).toEqual([429, 429, 429, 429, 429]);
  expect(await statuses('192.0.2.1', () => api.token)).toEqual([200, 200, 200, 200, 200]);
  expect((await statuses('192.0.2.2', () => newSecret('access'))).slice(0, 3)).toEqual([401, 401, 401]);
  const headers = { authorization: `Bearer ${newSecret('access')}`, 'x-forwarded-for': '192.0.2.1' };
  const refused = await api.call('GET', path, { headers });
  expect([refused.body.error.code, Number(refused.headers.get('retry-after'))]).toEqual(['TooManyRequests', 20]);
  const [bucket] = await api.store.find(attemptBuckets, { index: 'byEnd' });
  expect(
    await new FailureLimits(api.store).secondsToWait([{ id: bucket?.id ?? '', limit: { capacity: 3, seconds: 60 } }]),
  ).toBeGreaterThan(10);
});

test('requests without a token do not count, and spawn tokens do', async () => {
  await using api = await openTestApi({ invalidTokensPerMinute: 2 });
  for (let i = 0; i < 5; i += 1) expect((await api.call('GET', path)).status).toBe(401);
  const spawn = async (token: string) => (await api.call('POST', `/token/${token}/spawn`)).status;
  expect([await spawn('x'), await spawn('y'), await spawn('z')]).toEqual([404, 404, 429]);
  const { token } = (await api.post('/user/acme/service/draw/token')).body;
  expect(await spawn(token)).toBe(200);
});
