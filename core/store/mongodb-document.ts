/**
 * Documents as MongoDB keeps them. They go through the text of `document-text.ts` first: so both drivers refuse the same
 * things, and give back the same for the same input, whatever that was.
 *
 * Keys: BSON has none with a zero byte, servers read `$` and `.` as operators and paths, and the driver takes an object with
 * `_bsontype` for one of its own. Such characters are written as `%` and two hexadecimal digits, and so is `%` itself.
 */
import { Binary } from 'mongodb';
import { documentToText, textToDocument } from './document-text.ts';
import type { StoredDocument } from './store.ts';

/** A document's fields but for its ID, ready for the driver. */
export type MongoFields = Readonly<Record<string, unknown>>;

const ordinary = { configurable: true, enumerable: true, writable: true };

const unsafeCharacters = /[%$.\0]|^_(?=bsontype$)/g;
const escapedCharacters = /%([0-9A-F]{2})/g;

/** Makes a document ready to be stored; also gives what will be read back. Throws a `TypeError` if it cannot be stored. */
export function toMongo<T extends StoredDocument>(document: T): { readonly fields: MongoFields; readonly plain: T } {
  const plain = textToDocument(documentToText(document)) as T;
  const { id: _id, ...fields } = plain;
  return { fields: escapeKeys(fields) as MongoFields, plain };
}

/** Makes a document of what was stored. */
export function fromMongo(id: string, fields: MongoFields): unknown {
  return { id, ...(unescapeKeys(fields) as object) };
}

function escapeKeys(value: unknown): unknown {
  if (!isNested(value)) return value;
  if (Array.isArray(value)) return value.map(escapeKeys);
  return mapEntries(value, (key) => key.replace(unsafeCharacters, hexadecimal), escapeKeys);
}

function unescapeKeys(value: unknown): unknown {
  if (value instanceof Uint8Array) return new Uint8Array(value);
  if (value instanceof Binary) return new Uint8Array(value.buffer.subarray(0, value.position));
  if (!isNested(value)) return value;
  if (Array.isArray(value)) return value.map(unescapeKeys);
  return mapEntries(
    value,
    (key) => (key.includes('%') ? key.replace(escapedCharacters, character) : key),
    unescapeKeys,
  );
}

function isNested(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !(value instanceof Date) && !(value instanceof Uint8Array);
}

function mapEntries(object: object, toKey: (key: string) => string, toValue: (value: unknown) => unknown): object {
  const mapped: Record<string, unknown> = {};
  for (const [key, value] of Object.entries(object)) {
    // What an assignment would take for something else becomes an ordinary field, too.
    if (key === '__proto__') Object.defineProperty(mapped, key, { ...ordinary, value: toValue(value) });
    else mapped[toKey(key)] = toValue(value);
  }
  return mapped;
}

function hexadecimal(text: string): string {
  return `%${text.charCodeAt(0).toString(16).toUpperCase().padStart(2, '0')}`;
}

function character(_escaped: string, digits: string): string {
  return String.fromCharCode(Number.parseInt(digits, 16));
}
