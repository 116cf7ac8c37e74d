import { expect, test } from 'vitest';
import { PlatformSecret } from './platform-secret.ts';
import { SecretBox } from './secret-box.ts';

const secret = new PlatformSecret(Buffer.alloc(32, 1));
const box = new SecretBox(secret.keyFor('tests'));

test.each(['', 'a plain text', 'ключ 🔑', 'x'.repeat(100_000)])('a sealed text opens at its place', (text) => {
  const sealed = box.seal(text, 'here');
  expect(box.open(sealed, 'here')).toBe(text);
  expect(text === '' || !sealed.includes(text)).toBe(true);
});

test('two sealed forms of the same text differ', () => {
  expect(box.seal('secret', 'here')).not.toBe(box.seal('secret', 'here'));
});

test('a sealed text does not open for another place, with another key, or after a change', () => {
  const sealed = box.seal('secret', 'here');
  expect(() => box.open(sealed, 'there')).toThrow('authenticate');
  expect(() => new SecretBox(secret.keyFor('others')).open(sealed, 'here')).toThrow('authenticate');
  const bytes = Buffer.from(sealed, 'base64url');
  for (const at of [0, 15, bytes.length - 1]) {
    const changed = Buffer.from(bytes);
    changed[at] = (changed[at] ?? 0) ^ 1;
    expect(() => box.open(changed.toString('base64url'), 'here')).toThrow('authenticate');
  }
  expect(() => box.open('', 'here')).toThrow('initialization vector');
});
