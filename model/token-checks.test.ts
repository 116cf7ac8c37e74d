import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { openInProcessBus } from '../core/bus/in-process.ts';
import type { Bus } from '../core/bus/bus.ts';
import { ManualClock } from '../core/clock/testing/manual-clock.ts';
import { silentLog } from '../core/log/log.ts';
import type { Store } from '../core/store/store.ts';
import { accessTokenDocument, accessTokens, newSecret, revoke } from './access-token.ts';
import { accounts } from './account.ts';
import type { Permissions } from './permissions.ts';
import { TokenChecks } from './token-checks.ts';
import { users } from './user.ts';
import { openTestStore } from '../test/kit/ports/test-store.ts';

const log = silentLog();

let owned: AsyncDisposableStack;
let store: Store;
let bus: Bus;
let clock: ManualClock;
beforeEach(async () => {
  clock = new ManualClock();
  // The cache uses the machine's time.
  vi.useFakeTimers({ toFake: ['performance'] });
  owned = new AsyncDisposableStack();
  store = owned.use(await openTestStore());
  bus = owned.use(openInProcessBus({ log }));
  await store.insert(accounts, { id: 'acme', createdAt: new Date() });
});
afterEach(async () => {
  await owned.disposeAsync();
  vi.useRealTimers();
});

/** Lets time pass by both clocks of the checks. */
async function pass(ms: number): Promise<void> {
  vi.advanceTimersByTime(ms);
  await clock.advance(ms);
}

/** The checks of another process. With a separate bus, they receive no messages. */
async function openChecks(onBus: Bus = bus, through: Store = store): Promise<TokenChecks> {
  const checks = owned.use(new TokenChecks({ store: through, bus: onBus, clock, log }));
  await checks.listen();
  return checks;
}

async function addToken(fields: { user?: string } = {}): Promise<string> {
  const document = accessTokenDocument(
    newSecret('access'),
    { account: 'acme', name: 'test', scopes: ['read', 'push'], ...fields },
    new Date(),
  );
  await store.insert(accessTokens, document);
  return document.id;
}

async function revokeInStore(id: string): Promise<void> {
  await store.update(accessTokens, id, (token) => revoke(token, new Date()));
}

test('a published revocation takes effect at once, in every process that receives the message', async () => {
  const [here, there] = [await openChecks(), await openChecks()];
  const id = await addToken();
  expect(await here.permissionsOf(id)).toMatchObject({ account: 'acme' });
  expect(await there.permissionsOf(id)).toMatchObject({ account: 'acme' });
  await revokeInStore(id);
  await here.publishChange(id);
  expect(await here.permissionsOf(id)).toBeUndefined();
  await new Promise(setImmediate);
  expect(await there.permissionsOf(id)).toBeUndefined();
});

test('a process that receives no message reads a revocation from the store within a second, and ends open streams', async () => {
  const checks = await openChecks(owned.use(openInProcessBus({ log })));
  const id = await addToken();
  const permissions = await checks.permissionsOf(id);
  if (!permissions) throw new Error('The token is not valid');
  const failing = () => {
    throw new Error('no reason');
  };
  using first = checks.watch(permissions, { reason: failing });
  using watch = checks.watch(permissions, { reason: () => new Error('revoked') });
  await revokeInStore(id);
  await pass(999);
  expect(await checks.permissionsOf(id)).toBeUndefined();
  await expect.poll(() => watch.signal.aborted, { interval: 5 }).toBe(true);
  expect(first.signal.reason).toMatchObject({ message: 'no reason' });
});

test('a token is read a few times a second, however often it is checked, and its use is recorded once', async () => {
  const calls: string[] = [];
  const counted = new Proxy(store, {
    get: (target, name) => {
      const value: unknown = Reflect.get(target, name, target);
      if (typeof value !== 'function') return value;
      return (...args: unknown[]): unknown => {
        calls.push(String(name));
        return Reflect.apply(value, target, args);
      };
    },
  });
  const checks = await openChecks(bus, counted);
  const id = await addToken();
  for (let i = 0; i < 500; i += 1) {
    expect(await checks.permissionsOf(id)).toBeDefined();
    await pass(2);
  }
  expect(calls.filter((name) => name === 'get').length).toBeLessThanOrEqual(8);
  expect(calls.filter((name) => name === 'update')).toHaveLength(1);
  await expect.poll(async () => (await store.get(accessTokens, id))?.lastUsedAt).toBeInstanceOf(Date);
});

test('a token allows what its user may do now, and is invalid once the user is disabled', async () => {
  const checks = await openChecks();
  const user = { id: 'ada@example.com', isAdmin: false, accounts: ['acme'], createdAt: new Date() };
  await store.insert(users, user);
  const id = await addToken({ user: user.id });
  const setRole = async (role: 'member' | 'viewer') => {
    const member = { user: user.id, role, addedAt: new Date() };
    await store.update(accounts, 'acme', (account) => ({ ...account, members: [member] }));
    await checks.publishChange();
    return (await checks.permissionsOf(id))?.accounts[0]?.scopes;
  };
  expect(await checks.permissionsOf(id)).toBeUndefined();
  expect(await setRole('member')).toEqual(['read', 'push']);
  expect(await setRole('viewer')).toEqual(['read']);
  await store.update(users, user.id, (current) => ({ ...current, disabledAt: new Date() }));
  await checks.publishChange();
  expect(await checks.permissionsOf(id)).toBeUndefined();
});

test('an open stream ends when its user loses a role, not when the user joins another account or gets a higher role', async () => {
  const checks = await openChecks();
  const user = { id: 'ada@example.com', isAdmin: false, accounts: ['acme', 'lab'], createdAt: new Date() };
  await store.insert(users, user);
  await store.insert(accounts, { id: 'lab', createdAt: new Date() });
  const setRole = async (account: string, role: 'owner' | 'member' | 'viewer') => {
    const member = { user: user.id, role, addedAt: new Date() };
    await store.update(accounts, account, (current) => ({ ...current, members: [member] }));
  };
  await setRole('acme', 'member');
  const secret = newSecret('access');
  const about = { kind: 'cli', user: user.id, name: 'test', scopes: ['read', 'push'] } as const;
  const document = accessTokenDocument(secret, about, new Date());
  await store.insert(accessTokens, document);
  const { id } = document;
  const permissions = await checks.permissionsOf(id);
  if (!permissions) throw new Error('The token is not valid');
  using watch = checks.watch(permissions, { reason: () => new Error('changed') });
  using allowing = checks.watch(permissions, { reason: () => new Error('changed'), allows: () => true });
  const isInOne = (now: Permissions) => now.accounts.length === 1;
  using joined = checks.watch(permissions, { reason: () => new Error('changed'), allows: isInOne });
  await setRole('lab', 'member');
  await checks.publishChange();
  await expect.poll(() => joined.signal.aborted).toBe(true);
  expect(watch.signal.aborted).toBe(false);
  using lost = checks.watch(permissions, {
    reason: () => new Error('changed'),
    allows: ({ accounts: [{ role } = {}] }) => role !== 'owner',
  });
  await setRole('acme', 'owner');
  await checks.publishChange();
  await expect.poll(() => lost.signal.aborted).toBe(true);
  expect(watch.signal.aborted).toBe(false);
  await setRole('acme', 'viewer');
  await checks.publishChange();
  await expect.poll(() => watch.signal.aborted).toBe(true);
  expect(allowing.signal.aborted).toBe(false);
  await revokeInStore(id);
  await checks.publishChange();
  await expect.poll(() => allowing.signal.aborted).toBe(true);
});
