import { expect, test } from 'vitest';
import { PasswordHashes, recommendedCosts } from './password-hash.ts';

/** Costs that are high enough to measure, but a twentieth of the platform's. */
const passwords = new PasswordHashes({ memory: 8 * 1024, passes: 1, parallelism: 1 });

test('a password matches its hash in every Unicode form, and no other password does', async () => {
  const hash = await passwords.hash('caf\u00e9 au lait');
  expect(await passwords.matches('cafe\u0301 au lait', hash)).toBe(true);
  expect(await passwords.matches('cafe au lait', hash)).toBe(false);
  expect(await passwords.matches('', hash)).toBe(false);
});

test('a hash contains its costs, and the platform uses the costs that RFC 9106 recommends', async () => {
  const hash = await new PasswordHashes(recommendedCosts).hash('correct horse');
  expect(hash).toMatch(/^\$argon2id\$v=19\$m=65536,t=3,p=4\$[A-Za-z0-9+/]{22}\$[A-Za-z0-9+/]{43}$/);
  expect(await passwords.matches('correct horse', hash)).toBe(true);
});

test('two hashes of a password differ', async () => {
  expect(await passwords.hash('correct horse')).not.toBe(await passwords.hash('correct horse'));
});

test('without a hash, no password matches, after the same work', async () => {
  const hash = await passwords.hash('correct horse');
  // CPU time, which does not depend on the load of the machine.
  const cpuOf = async (work: () => Promise<unknown>) => {
    const before = process.cpuUsage();
    await work();
    const { user, system } = process.cpuUsage(before);
    return user + system;
  };
  const withHash = await cpuOf(async () => await passwords.matches('wrong', hash));
  const without = await cpuOf(async () => expect(await passwords.matches('correct horse', undefined)).toBe(false));
  expect(without).toBeGreaterThan(withHash / 4);
});

test('a hash with other parameters is checked with its own parameters', async () => {
  // From the reference implementation: argon2id, m=65536, t=2, p=1, salt "somesalt", password "password".
  const hash = '$argon2id$v=19$m=65536,t=2,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc';
  expect(await passwords.matches('password', hash)).toBe(true);
  expect(await passwords.matches('differentpassword', hash)).toBe(false);
});
