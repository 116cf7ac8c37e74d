// Takes about 4 s
import { expect, test } from 'vitest';
import { hashPassword, isPassword } from './password-hash.ts';

test('a password is recognized by its hash, in every Unicode form, and no other is', async () => {
  const hash = await hashPassword('caf\u00e9 au lait');
  expect(hash).toMatch(/^\$argon2id\$v=19\$m=65536,t=3,p=4\$[A-Za-z0-9+/]{22}\$[A-Za-z0-9+/]{43}$/);
  expect(await isPassword('cafe\u0301 au lait', hash)).toBe(true);
  expect(await isPassword('cafe au lait', hash)).toBe(false);
  expect(await isPassword('', hash)).toBe(false);
});

test('two hashes of a password differ', async () => {
  expect(await hashPassword('correct horse')).not.toBe(await hashPassword('correct horse'));
});

test('without a hash, the answer is no, after the same work', async () => {
  const hash = await hashPassword('correct horse');
  const time = async (work: () => Promise<unknown>) => {
    const startMs = performance.now();
    await work();
    return performance.now() - startMs;
  };
  const withHash = await time(async () => await isPassword('wrong', hash));
  const without = await time(async () => expect(await isPassword('correct horse', undefined)).toBe(false));
  expect(without).toBeGreaterThan(withHash / 4);
});

test('a hash with other parameters is checked by those', async () => {
  // From the reference implementation: argon2id, m=65536, t=2, p=1, salt "somesalt", password "password".
  const hash = '$argon2id$v=19$m=65536,t=2,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc';
  expect(await isPassword('password', hash)).toBe(true);
  expect(await isPassword('differentpassword', hash)).toBe(false);
});
