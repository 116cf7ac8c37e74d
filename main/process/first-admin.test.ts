import { rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { PasswordHashes } from '../../core/secret/password-hash.ts';
import type { Store } from '../../core/store/store.ts';
import { accounts, roleIn } from '../../model/account.ts';
import { setUp } from '../../model/setup.ts';
import { users } from '../../model/user.ts';
import { temporaryFolder } from '../../test/kit/machine/temporary-folder.ts';
import { ensureFirstAdmin } from './first-admin.ts';
import { openTestStore } from '../../test/kit/ports/test-store.ts';

const passwords = new PasswordHashes({ memory: 8, passes: 1, parallelism: 1 });

let owned: AsyncDisposableStack;
let store: Store;
let folder: string;
beforeEach(async () => {
  owned = new AsyncDisposableStack();
  folder = owned.use(await temporaryFolder()).path;
  store = owned.use(await openTestStore());
  await store.insert(accounts, { id: 'home', createdAt: new Date() });
});
afterEach(async () => await owned.disposeAsync());

async function start(email?: string) {
  return await ensureFirstAdmin({
    store,
    passwords,
    folder,
    account: 'home',
    email,
    passwordFile: join(folder, 'password'),
  });
}

test('a start without an administrator writes a set-up code that only its owner can read, the same each time', async () => {
  const first = await start();
  expect(first?.code).toMatch(/^(?:[a-z2-9]{5}-){3}[a-z2-9]{5}$/);
  expect((await stat(first?.file ?? '')).mode & 0o777).toBe(0o600);
  expect(await start()).toEqual(first);
  await setUp(store, first?.code ?? '', { email: 'Ada@example.com', passwordHash: 'x' });
  expect(await start()).toBeUndefined();
  await expect(stat(first?.file ?? '')).rejects.toMatchObject({ code: 'ENOENT' });
});

test('a user who exists becomes an administrator again with the own password, and the file is not read', async () => {
  await writeFile(join(folder, 'password'), 'the first password');
  await start('ada@example.com');
  await store.update(users, 'ada@example.com', (user) => ({ ...user, isAdmin: false, passwordHash: 'changed' }));
  await rm(join(folder, 'password'));
  await start('ada@example.com');
  expect(await store.get(users, 'ada@example.com')).toMatchObject({ isAdmin: true, passwordHash: 'changed' });
});

test('a set-up that was claimed before a crash is finished by the next start', async () => {
  const code = (await start())?.code ?? '';
  const dying = new Proxy(store, {
    get: (target, name) => {
      const value: unknown = Reflect.get(target, name, target);
      if (name === 'insert') return async () => await Promise.reject(new Error('The process died'));
      return typeof value === 'function' ? (value.bind(target) as unknown) : value;
    },
  });
  await expect(setUp(dying, code, { email: 'ada@example.com', passwordHash: 'x' })).rejects.toThrow('died');
  expect(await store.get(users, 'ada@example.com')).toBeUndefined();
  await expect(setUp(store, code, { email: 'eve@example.com', passwordHash: 'y' })).rejects.toThrow('set-up code');
  expect(await start()).toBeUndefined();
  expect(await store.get(users, 'ada@example.com')).toMatchObject({ isAdmin: true });
  const account = await store.get(accounts, 'home');
  expect(account && roleIn(account, 'ada@example.com')).toBe('owner');
});

test('a start creates the configured administrator, and a later start does not change the password', async () => {
  await writeFile(join(folder, 'password'), 'first good password\n');
  expect(await start('Root@example.com')).toBeUndefined();
  const { passwordHash } = (await store.get(users, 'root@example.com')) ?? {};
  expect(await passwords.matches('first good password', passwordHash)).toBe(true);
  await writeFile(join(folder, 'password'), 'second good password');
  await start('root@example.com');
  expect((await store.get(users, 'root@example.com'))?.passwordHash).toBe(passwordHash);
});

test('a missing or short password is a configuration error', async () => {
  await expect(start('root@example.com')).rejects.toThrow(/BERTH_ADMIN_PASSWORD_FILE .*cannot be read/);
  await writeFile(join(folder, 'password'), 'short');
  await expect(start('root@example.com')).rejects.toThrow(/BERTH_ADMIN_PASSWORD_FILE .*Too short/);
});
