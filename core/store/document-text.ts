/**
 * Converts documents to text, in MongoDB Extended JSON, and back without changes:
 * - a `Date` is `{"$date":"2026-01-01T00:00:00.000Z"}`, always of this length, so that texts are ordered as their dates;
 * - bytes are `{"$binary":{"base64":"…","subType":"00"}}`, and are read as `Uint8Array`, also if they were a `Buffer`;
 * - a key that begins with `$` gets another `$` in front, so that it is not read as one of the above.
 *
 * The `bson` package does not fit: it omits `.000`, which breaks the order, and reads a user's own `{"$date": …}` as a date.
 */

/** Far more than any document needs; also detects cycles. MongoDB's own limit is 100. */
const maxDepth = 64;

/** The years that a date written with four digits can have. */
const maxYear = 9999;

type Json = string | number | boolean | null | Json[] | { [key: string]: Json };

/**
 * Writes a document as text. Fields that are `undefined` are left out, and -0 becomes 0.
 * Throws a `TypeError` with the path of a value that cannot be stored unchanged.
 */
export function documentToText(document: object): string {
  return JSON.stringify(toJson(document, '', 0));
}

/** Reads a document that `documentToText` wrote. */
export function textToDocument(text: string): unknown {
  return fromJson(JSON.parse(text) as Json);
}

function toJson(value: unknown, path: string, depth: number): Json {
  if (typeof value === 'string') {
    if (value.isWellFormed()) return value;
    throw unfit(path, 'a string that is not well-formed Unicode');
  }
  if (typeof value === 'number') {
    if (Number.isFinite(value)) return value;
    throw unfit(path, `the number ${value}`);
  }
  if (typeof value === 'boolean' || value === null) return value;
  if (typeof value !== 'object') throw unfit(path, `something of type ${typeof value}`);
  if (depth > maxDepth) throw unfit(path, 'something nested too deeply, or in a cycle');
  return objectToJson(value, path, depth);
}

function objectToJson(value: object, path: string, depth: number): Json {
  if (Array.isArray(value)) return Array.from(value, (item, i) => toJson(item, `${path}[${i}]`, depth + 1));
  if (value instanceof Date) return { $date: dateText(value, path) };
  if (value instanceof Uint8Array) {
    const bytes = Buffer.from(value.buffer, value.byteOffset, value.byteLength);
    return { $binary: { base64: bytes.toString('base64'), subType: '00' } };
  }
  const prototype: unknown = Object.getPrototypeOf(value);
  if (prototype !== Object.prototype && prototype !== null) throw unfit(path, `an object of ${className(value)}`);
  if (Object.getOwnPropertySymbols(value).length > 0) throw unfit(path, 'an object with symbols as keys');
  const json: { [key: string]: Json } = {};
  for (const [key, item] of Object.entries(value)) {
    if (item === undefined) continue;
    if (!key.isWellFormed()) throw unfit(path, 'a key that is not well-formed Unicode');
    setField(json, key.startsWith('$') ? `$${key}` : key, toJson(item, path ? `${path}.${key}` : key, depth + 1));
  }
  return json;
}

function dateText(date: Date, path: string): string {
  const year = date.getUTCFullYear();
  if (Number.isNaN(year)) throw unfit(path, 'an invalid date');
  if (year < 0 || year > maxYear) throw unfit(path, `a date outside the years 0 to ${maxYear}`);
  return date.toISOString();
}

/** Converts a parsed value in place. Few objects have marked keys. */
function fromJson(json: Json): unknown {
  if (typeof json !== 'object' || json === null) return json;
  const fields = json as Record<string, unknown>;
  const keys = Object.keys(fields);
  for (const key of keys) if (key.charCodeAt(0) === dollarCode) return fromMarked(fields);
  for (const key of keys) {
    const item = fields[key];
    if (typeof item === 'object' && item !== null) fields[key] = fromJson(item as Json);
  }
  return json;
}

function fromMarked(json: Record<string, unknown>): unknown {
  const value: Record<string, unknown> = {};
  for (const key of Object.keys(json)) {
    const item = json[key] as Json;
    if (key === '$date') return new Date(item as string);
    if (key === '$binary') return bytesOf(item as { base64: string });
    setField(value, key.charCodeAt(0) === dollarCode ? key.slice(1) : key, fromJson(item));
  }
  return value;
}

const dollarCode = '$'.charCodeAt(0);

/** Copies, because a small `Buffer` is a view of a shared pool. */
function bytesOf(binary: { base64: string }): Uint8Array {
  return new Uint8Array(Buffer.from(binary.base64, 'base64'));
}

/** Assigning to `__proto__` would change the prototype instead. */
function setField(target: Record<string, unknown>, key: string, value: unknown): void {
  if (key !== '__proto__') target[key] = value;
  else Object.defineProperty(target, key, { value, enumerable: true, configurable: true, writable: true });
}

function className(value: object): string {
  const { name } = value.constructor as { name?: unknown };
  return typeof name === 'string' && name ? `class ${name}` : 'an unnamed class';
}

function unfit(path: string, what: string): TypeError {
  return new TypeError(`Cannot store ${what}, at ${path ? `"${path}"` : 'the top of the document'}`);
}
