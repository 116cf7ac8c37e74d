/**
 * Documents as MongoDB stores them. They are converted by `document-text.ts` first, so that both drivers reject the same documents
 * and return the same ones.
 *
 * Keys: BSON allows no zero byte, servers read `$` and `.` as operators and paths, and the driver treats an object with `_bsontype`
 * as its own. Such characters, and `%`, are written as `%` and two hexadecimal digits.
 */
import { Binary } from 'mongodb';
import { documentToText, textToDocument } from '../document-text.ts';
import type { StoredDocument } from '../store.ts';

/** A document's fields without its ID, as the driver stores them. */
export type MongoFields = Readonly<Record<string, unknown>>;

const ordinary = { configurable: true, enumerable: true, writable: true };

const unsafeCharacters = /[%$.\0]|^_(?=bsontype$)/g;
const escapedCharacters = /%([0-9A-F]{2})/g;

/** Converts a document for MongoDB; `plain` is the document as it will be read. Throws a `TypeError` if it cannot be stored. */
export function toMongo<T extends StoredDocument>(document: T): { readonly fields: MongoFields; readonly plain: T } {
  const plain = textToDocument(documentToText(document)) as T;
  const { id: _id, ...fields } = plain;
  return { fields: escapeKeys(fields) as MongoFields, plain };
}

/** Converts a stored document back. */
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
    // An assignment to `__proto__` would change the prototype.
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
