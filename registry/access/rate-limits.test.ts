import { expect, test } from 'vitest';
import { ManualClock } from '../../core/clock/testing/manual-clock.ts';
import { attemptBuckets } from '../../model/attempts.ts';
import { openTestRegistry } from '../../test/kit/registry/registry.ts';
import type { Answer, Sent, TestRegistry } from '../../test/kit/registry/registry.ts';

async function openLimited(limits: { requestsPerSecond?: number; failedLoginsPerMinute?: number }) {
  const clock = new ManualClock(new Date());
  return Object.assign(await openTestRegistry({ clock, limits, behindLoadBalancer: true }), { clock });
}

const from = (address: string, authorization?: string): Sent => ({
  headers: { 'x-forwarded-for': `6.6.6.6, ${address}`, ...(authorization && { authorization }) },
});

const rejection = ({ status, code, headers }: Answer) => [status, code, headers['retry-after']];

async function failTimes(registry: TestRegistry, times: number, sent: Sent): Promise<number[]> {
  const seen: number[] = [];
  for (let i = 0; i < times; i += 1) seen.push((await registry.send('/token', sent)).status);
  return seen;
}

test('a user with too many failed logins waits, even with the right password, and other users do not', async () => {
  await using registry = await openLimited({ failedLoginsPerMinute: 3 });
  const wrong = registry.basic('acme', 'wrong');
  const right = registry.basic('acme', registry.token);
  expect(await failTimes(registry, 5, from('192.0.2.1', wrong))).toEqual([401, 401, 401, 429, 429]);
  expect(rejection(await registry.send('/token', from('192.0.2.1', right)))).toEqual([429, 'TOOMANYREQUESTS', '20']);
  expect((await registry.send('/v2/', from('192.0.2.1', right))).status).toBe(429);
  const form = { grant_type: 'password', username: 'acme', password: registry.token };
  const post = await registry.send('/token', {
    method: 'POST',
    headers: { ...from('192.0.2.1').headers, 'content-type': 'application/x-www-form-urlencoded' },
    body: new URLSearchParams(form).toString(),
  });
  expect(post.status).toBe(429);
  // The same user from another address, another user from this address, and a request without a login.
  expect((await registry.send('/token', from('192.0.2.2', right))).status).toBe(200);
  const other = registry.basic('other', await registry.addToken('other', ['read']));
  expect((await registry.send('/token', from('192.0.2.1', other))).status).toBe(200);
  expect((await registry.send('/token', from('192.0.2.1'))).status).toBe(200);

  await registry.clock.advance(20_000);
  expect((await registry.send('/token', from('192.0.2.1', right))).status).toBe(200);
  expect(await failTimes(registry, 2, from('192.0.2.1', wrong))).toEqual([401, 429]);
  const metrics = await registry.metrics.metrics();
  expect(metrics).toContain('berth_registry_errors_total{reason="too-many-failures"} 6');
});

test('a token that a client sends as its user name is not stored', async () => {
  await using registry = await openLimited({ failedLoginsPerMinute: 3 });
  await failTimes(registry, 1, from('192.0.2.1', registry.basic(`other.${registry.token}`, 'x')));
  const buckets = await registry.store.find(attemptBuckets, { index: 'byEnd' });
  expect(buckets).toHaveLength(2);
  expect(JSON.stringify(buckets)).not.toContain(registry.token);
});

test('failures in one process count in all others', async () => {
  await using registry = await openLimited({ failedLoginsPerMinute: 3 });
  const wrong = from('192.0.2.1', registry.basic('acme', 'wrong'));
  expect(await failTimes(registry, 2, wrong)).toEqual([401, 401]);
  await registry.restart();
  expect(await failTimes(registry, 2, wrong)).toEqual([401, 429]);
  await registry.restart();
  const right = from('192.0.2.1', registry.basic('acme', registry.token));
  expect(rejection(await registry.send('/token', right))).toEqual([429, 'TOOMANYREQUESTS', '20']);
});

test('logins that succeed write nothing', async () => {
  const written: string[] = [];
  await using registry = await openTestRegistry({
    limits: { failedLoginsPerMinute: 3 },
    beforeWrite: (method) => void written.push(method),
  });
  const right = { headers: { authorization: registry.basic('acme', registry.token) } };
  expect(new Set(await failTimes(registry, 20, right))).toEqual(new Set([200]));
  expect(written).toEqual([]);
});

test('successful logins do not count, however many there are', async () => {
  await using registry = await openLimited({ failedLoginsPerMinute: 3 });
  const right = registry.basic('acme', registry.token);
  expect(new Set(await failTimes(registry, 20, from('192.0.2.1', right)))).toEqual(new Set([200]));
});

test('an address, or a network of IPv6 addresses, that tries one user after another is rejected for all users', async () => {
  await using registry = await openLimited({ failedLoginsPerMinute: 1 });
  const seen: number[] = [];
  for (let i = 1; i <= 11; i += 1) {
    const sent = from(`2001:db8::${i}`, registry.basic(`user-${i}`, 'wrong'));
    seen.push((await registry.send('/token', sent)).status);
  }
  expect(seen).toEqual([...Array<number>(10).fill(401), 429]);
  const next = from('2001:db8:0:1::1', registry.basic('user-1', 'wrong'));
  expect((await registry.send('/token', next)).status).toBe(401);
});

test('X-Forwarded-For counts only behind a load balancer', async () => {
  await using registry = await openTestRegistry({ limits: { failedLoginsPerMinute: 2 } });
  const seen: number[] = [];
  for (let i = 1; i <= 3; i += 1) {
    const sent = from(`192.0.2.${i}`, registry.basic('acme', 'wrong'));
    seen.push((await registry.send('/token', sent)).status);
  }
  expect(seen).toEqual([401, 401, 429]);
});

test('requests count by account from any address, and by address without an account', async () => {
  await using registry = await openLimited({ requestsPerSecond: 1 });
  const statuses = async (times: number, sent: (i: number) => Sent, path = '/v2/') => {
    const seen: number[] = [];
    for (let i = 0; i < times; i += 1) seen.push((await registry.send(path, sent(i))).status);
    return seen;
  };
  const right = registry.basic('acme', registry.token);
  const many = await statuses(12, (i) => from(`192.0.2.${i}`, right));
  expect(many).toEqual([...Array<number>(10).fill(200), 429, 429]);
  expect(rejection(await registry.send('/v2/', from('192.0.2.1', right)))).toEqual([429, 'TOOMANYREQUESTS', '1']);
  const other = registry.basic('other', await registry.addToken('other', ['read']));
  expect(await statuses(1, () => from('192.0.2.1', other))).toEqual([200]);
  expect(await statuses(6, () => from('192.0.2.1'))).toEqual(Array<number>(6).fill(401));
  // Requests for grants count too.
  expect(await statuses(6, () => from('192.0.2.1'), '/token')).toEqual([200, 200, 200, 200, 429, 429]);
  await registry.clock.advance(2_000);
  expect(await statuses(3, () => from('192.0.2.9', right))).toEqual([200, 200, 429]);
});

test('the workers of the platform are not limited', async () => {
  await using registry = await openLimited({ requestsPerSecond: 1 });
  const token = await registry.grants.issue({ subject: 'node:one', access: [] }, 60, registry.clock.now());
  const seen = new Set<number>();
  for (let i = 0; i < 15; i += 1) seen.add((await registry.send('/v2/', from('192.0.2.1', `Bearer ${token}`))).status);
  expect(seen).toEqual(new Set([200]));
});
