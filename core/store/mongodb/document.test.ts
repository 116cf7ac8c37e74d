import { BSON } from 'mongodb';
import { expect, test } from 'vitest';
import { fromMongo, toMongo } from './document.ts';

/** The document after the driver has written and read it. */
function stored(document: { id: string }): unknown {
  const { fields } = toMongo(document);
  return fromMongo(document.id, BSON.deserialize(BSON.serialize({ fields }))['fields'] as Record<string, unknown>);
}

test('every key is read as it was written', () => {
  const keys = ['$set', 'a.b', 'a\0b', '%', '%24', '%%2E', '$', '.', '', '_bsontype', '__bsontype', 'toBSON', '$ref'];
  const document = { id: 'one', ...Object.fromEntries(keys.map((key) => [key, { [key]: key }])) };
  expect(stored(document)).toStrictEqual(document);
});

test('no stored key has a meaning for a server or the driver', () => {
  const fields = toMongo({ id: 'one', $set: { 'a.b': 1 }, _bsontype: 'ObjectId' } as { id: string }).fields;
  expect(fields).toStrictEqual({ '%24set': { 'a%2Eb': 1 }, '%5Fbsontype': 'ObjectId' });
});

test('numbers stay numbers, however large, and -0 becomes 0', () => {
  const numbers = [0, -1, 2 ** 31 - 1, 2 ** 31, -(2 ** 31) - 1, 2 ** 53, 87813263637910020, 1e21, 0.1, 5e-324];
  expect(stored({ id: 'one', numbers } as { id: string })).toStrictEqual({ id: 'one', numbers });
  expect(Object.is((stored({ id: 'one', zero: -0 } as { id: string }) as { zero: number }).zero, 0)).toBe(true);
});

test('bytes are read as a Uint8Array with its own memory', () => {
  const document = stored({ id: 'one', bytes: Buffer.from('abc') } as { id: string }) as { bytes: Uint8Array };
  expect(document.bytes).toStrictEqual(new Uint8Array([97, 98, 99]));
  expect(document.bytes.buffer.byteLength).toBe(3);
});
