import { EJSON } from 'bson';
import { expect, test } from 'vitest';
import { documentToText, textToDocument } from './document-text.ts';

const document = {
  id: 'one',
  at: new Date('2026-01-01T00:00:00.000Z'),
  list: [1, 2.5, 'text', null, { deep: new Date('1969-12-31T23:59:59.999Z') }],
  bytes: Uint8Array.of(1, 2, 3),
};

test('text is Extended JSON that other tools can read', () => {
  const parsed = EJSON.parse(documentToText(document)) as typeof document & { bytes: { buffer: Uint8Array } };
  expect(parsed.at).toStrictEqual(document.at);
  expect(parsed.list).toStrictEqual(document.list);
  expect(Buffer.from(parsed.bytes.buffer)).toStrictEqual(Buffer.from(document.bytes));
});

test('dates are texts of one length in the order of the dates', () => {
  const times = [-62_167_219_200_000, -1, 0, 1, 1_767_225_600_000, 1_767_225_600_500, 253_402_300_799_999];
  const texts = times.map((time) => documentToText({ at: new Date(time) }));
  expect(texts.toSorted()).toStrictEqual(texts);
  expect(texts[4]).toBe('{"at":{"$date":"2026-01-01T00:00:00.000Z"}}');
  expect(() => documentToText({ at: new Date(253_402_300_800_000) })).toThrow('outside the years 0 to 9999, at "at"');
  expect(() => documentToText({ at: new Date(-62_167_219_200_001) })).toThrow('outside the years 0 to 9999, at "at"');
});

test('keys that begin with a dollar are not mistaken for types', () => {
  const tricky = { $date: { $binary: { $$: [{ $date: '2026-01-01T00:00:00.000Z' }] } }, $: 1, a$: 2 };
  expect(textToDocument(documentToText(tricky))).toStrictEqual(tricky);
  const date = { at: { $date: '2026-01-01T00:00:00.000Z' } };
  expect(documentToText(date)).toBe('{"at":{"$$date":"2026-01-01T00:00:00.000Z"}}');
});

test('the error for a value that cannot be stored contains its path', () => {
  expect(() => documentToText({ env: { PATH: () => '' } })).toThrow(
    'Cannot store something of type function, at "env.PATH"',
  );
  expect(() => documentToText({ list: [1, new Map()] })).toThrow('Cannot store an object of class Map, at "list[1]"');
  expect(() => documentToText(new Map())).toThrow('at the top of the document');
});
