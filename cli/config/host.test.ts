import { expect, test } from 'vitest';
import { hostUrl, isPrivate } from './host.ts';

test.each([
  ['https://berth.example/', 'https://berth.example'],
  ['berth.example', 'https://berth.example'],
  ['berth.example:8443', 'https://berth.example:8443'],
  ['localhost:7100', 'http://localhost:7100'],
  ['127.0.0.1:7100', 'http://127.0.0.1:7100'],
  ['http://10.0.0.1/berth/', 'http://10.0.0.1/berth'],
])('%s is the platform at %s', (text, url) => {
  expect(hostUrl(text, '--host')).toBe(url);
});

test.each(['', 'ftp://berth.example', 'https://user:secret@berth.example', 'https://berth.example/?a', 'a b'])(
  '%j is not an address, and the error names the option',
  (text) => {
    expect(() => hostUrl(text, '--host')).toThrow(/^--host: /);
  },
);

test('only HTTPS and connections to this machine are private', () => {
  expect(
    ['https://berth.example', 'http://localhost:7100', 'http://127.0.0.1', 'http://[::1]:1'].every(isPrivate),
  ).toBe(true);
  expect(['http://berth.example', 'http://10.0.0.1', 'http://127.0.0.1.example'].some(isPrivate)).toBe(false);
});
