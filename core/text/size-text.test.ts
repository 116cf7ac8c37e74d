import { expect, test } from 'vitest';
import { parseSize, sizeText } from './size-text.ts';

test.each([
  [0, '0 bytes'],
  [1023, '1023 bytes'],
  [1024, '1 KiB'],
  [1536, '1.5 KiB'],
  [50 * 1024 ** 3, '50 GiB'],
  [2 ** 60, '1024 PiB'],
])('%i bytes are %s', (bytes, text) => {
  expect(sizeText(bytes)).toBe(text);
});

test.each([
  ['0', 0],
  ['1048576', 1_048_576],
  ['512b', 512],
  ['50GiB', 50 * 1024 ** 3],
  ['50 gib', 50 * 1024 ** 3],
  ['20GB', 20_000_000_000],
  ['20g', 20_000_000_000],
  ['1.5 TiB', 1.5 * 1024 ** 4],
  ['0.1k', 100],
  ['8PiB', undefined],
  ['', undefined],
  ['-1', undefined],
  ['1e9', undefined],
  ['5ib', undefined],
  ['5 x', undefined],
  ['GB', undefined],
  ['1,5GB', undefined],
])('%j means %s', (text, bytes) => {
  expect(parseSize(text)).toBe(bytes);
});
