import { randomBytes } from 'node:crypto';
import { expect, test } from 'vitest';
import { systemClock } from '../../core/clock/system-clock.ts';
import { accessTokens, hashToken, newSecret } from '../../model/access-token.ts';
import { accounts } from '../../model/account.ts';
import { openTestRegistry } from '../../test/kit/registry/registry.ts';
import { checkLogin } from './credentials.ts';

test('every wrong login costs the same reads, so that its duration does not reveal the reason', async () => {
  await using registry = await openTestRegistry();
  const reads: string[] = [];
  const store = new Proxy(registry.store, {
    get: (target, name) => {
      const value: unknown = Reflect.get(target, name, target);
      if (typeof value !== 'function') return value;
      return (...args: unknown[]): unknown => {
        reads.push(`${String(name)} ${(args[0] as { name?: string } | undefined)?.name}`);
        return Reflect.apply(value, target, args);
      };
    },
  });
  const revoked = await registry.addToken('acme', ['read']);
  await registry.store.update(accessTokens, hashToken(revoked), (token) => ({ ...token, revokedAt: new Date() }));
  const { token } = registry;
  const logins = [
    ['acme', token, true],
    [token, '', true],
    ['x', `acme:${token}`, true],
    ['acme', `acme.${token}`, true],
    [`acme.${token}`, '', true],
    ['x', `acme:acme.${token}`, true],
    ['x', `acme:other.${token}`, false],
    ['acme', `other.${token}`, false],
    [`other.${token}`, '', false],
    ['acme', newSecret('access'), false],
    ['acme', '', false],
    ['acme', randomBytes(4_000).toString('hex'), false],
    ['acme', revoked, false],
    ['acme', await registry.addToken('nobody', ['read']), false],
    ['nobody', token, false],
    ['other', token, false],
    ['', '', false],
  ] as const;
  for (const [user, password, isGood] of logins) {
    reads.length = 0;
    const found = await checkLogin({ store, clock: systemClock }, { user, password });
    expect([user, found !== undefined, reads]).toEqual([user, isGood, ['get access-tokens', 'get accounts']]);
  }
});

test('a token of an account with dots in its name can be split at its first dot', async () => {
  await using registry = await openTestRegistry();
  await registry.store.insert(accounts, { id: 'acme.example.org', createdAt: new Date() });
  const token = await registry.addToken('acme.example.org', ['read']);
  const context = { store: registry.store, clock: systemClock };
  const logIn = async (user: string, password: string) => (await checkLogin(context, { user, password }))?.account;
  expect(await logIn('acme', `example.org.${token}`)).toBe('acme.example.org');
  expect(await logIn('acme.example.org', token)).toBe('acme.example.org');
  expect(await logIn('acme', `example.com.${token}`)).toBeUndefined();
});
