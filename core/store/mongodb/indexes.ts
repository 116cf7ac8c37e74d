import { isDeepStrictEqual } from 'node:util';
import { MongoServerError } from 'mongodb';
import type { Collection, Db, Document } from 'mongodb';
import type { Log } from '../../log/log.ts';
import { serverHello } from './client.ts';
import { indexKeys, partialFilter } from './query.ts';
import type { MongoPartialFilter } from './query.ts';
import { indexOf } from '../query-plan.ts';
import type { AnyCollection, AnyIndex } from '../query-plan.ts';

/** The name prefix of Berth's indexes. Other indexes, such as those for sharding, are not changed. */
const ownPrefix = 'berth:';

/** Options that would make an index incomplete, or change its order. */
const foreignOptions = ['unique', 'sparse', 'collation', 'expireAfterSeconds', 'hidden'];

/** In MongoDB's list of error codes: another process was faster. */
const namespaceNotFound = 26;
const indexNotFound = 27;

/** Creates the declared indexes, and removes Berth's indexes that are no longer declared or differ. */
export async function makeIndexes(db: Db, declared: readonly AnyCollection[], log: Log): Promise<void> {
  const { setName, msg } = await serverHello(db);
  // Otherwise creating an index waits for every member of the replica set. A standalone server rejects the option.
  const quorum = setName !== undefined || msg === 'isdbgrid' ? { commitQuorum: 'majority' } : {};
  for (const { name, indexes } of declared) {
    const wanted = new Map(Object.values(indexes).map((each) => specOf(indexOf(each))));
    const collection = db.collection(name);
    const found = await indexesOf(collection);
    for (const { name: index, key } of found.filter((each) => isOurs(each) && !isWanted(each, wanted))) {
      // Two indexes cannot have the same keys, so one with other options is dropped before its successor is created.
      if (wanted.has(keyText(key as Keys))) await dropIndex(collection, index as string, log);
    }
    const there = new Set(found.filter((each) => isWanted(each, wanted)).map(({ key }) => keyText(key as Keys)));
    const missing = [...wanted].filter(([text]) => !there.has(text)).map(([, spec]) => spec);
    // The command, because the driver's method does not accept a quorum for all servers.
    if (missing.length > 0) await db.command({ createIndexes: name, indexes: missing, ...quorum });
    for (const { name: index, key } of found.filter(isOurs)) {
      if (!wanted.has(keyText(key as Keys))) await dropIndex(collection, index as string, log);
    }
  }
}

type Keys = Readonly<Record<string, unknown>>;

interface IndexSpec {
  readonly name: string;
  readonly key: Readonly<Record<string, 1>>;
  readonly partialFilterExpression?: MongoPartialFilter;
}

/** Indexes over the same fields are one index in the database, even if they are declared under several names. */
function specOf(index: AnyIndex): [string, IndexSpec] {
  const key = indexKeys(index.fields);
  const filter = partialFilter(index);
  const name = `${ownPrefix}${index.fields.join(',')}`;
  return [keyText(key), { name, key, ...(filter && { partialFilterExpression: filter }) }];
}

async function indexesOf(collection: Collection): Promise<Document[]> {
  try {
    return await collection.listIndexes().toArray();
  } catch (error) {
    if (hasCode(error, namespaceNotFound)) return [];
    throw error;
  }
}

function isOurs({ name }: Document): boolean {
  return typeof name === 'string' && name.startsWith(ownPrefix);
}

function isWanted(index: Document, wanted: ReadonlyMap<string, IndexSpec>): boolean {
  const spec = wanted.get(keyText(index['key'] as Keys));
  const hasFilter = isDeepStrictEqual(index['partialFilterExpression'], spec?.partialFilterExpression);
  return spec !== undefined && hasFilter && !foreignOptions.some((option) => Boolean(index[option]));
}

/** Keys in order, because the order is significant. */
function keyText(keys: Keys): string {
  return JSON.stringify(Object.entries(keys).map(([field, direction]) => [field, Number(direction)]));
}

async function dropIndex(collection: Collection, index: string, log: Log): Promise<void> {
  log.info({ collection: collection.collectionName, index }, 'Removing an index that is not declared in this form');
  try {
    await collection.dropIndex(index);
  } catch (error) {
    if (!hasCode(error, indexNotFound)) throw error;
  }
}

function hasCode(error: unknown, code: number): boolean {
  return error instanceof MongoServerError && error.code === code;
}
