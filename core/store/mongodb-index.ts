import { MongoServerError } from 'mongodb';
import type { Collection, Db, Document } from 'mongodb';
import type { Log } from '../log/log.ts';
import { serverHello } from './mongodb-client.ts';
import { indexKeys } from './mongodb-query.ts';
import type { AnyCollection } from './query-plan.ts';

/** How the indexes that we made are named. Those of anybody else, and those that sharding needs, are left alone. */
const ownPrefix = 'berth:';

/** What an index must not have: it would hold fewer documents than there are, or compare them otherwise. */
const foreignOptions = ['unique', 'sparse', 'partialFilterExpression', 'collation', 'expireAfterSeconds', 'hidden'];

/** In MongoDB's list of error codes: somebody else was faster. */
const namespaceNotFound = 26;
const indexNotFound = 27;

/** Makes the indexes that are declared, then removes those that are not any more, or differ. */
export async function makeIndexes(db: Db, declared: readonly AnyCollection[], log: Log): Promise<void> {
  const { setName, msg } = await serverHello(db);
  // Without this an index is not done while any one member of the replica set is away. A standalone server refuses it.
  const quorum = setName !== undefined || msg === 'isdbgrid' ? { commitQuorum: 'majority' } : {};
  for (const { name, indexes } of declared) {
    const wanted = new Map(Object.values(indexes).map(indexOf));
    const collection = db.collection(name);
    const found = await indexesOf(collection);
    for (const { name: index, key } of found.filter((each) => isOurs(each) && !isWanted(each, wanted))) {
      // Two indexes cannot have the same keys, so one that differs otherwise must go before its successor is made.
      if (wanted.has(keyText(key as Keys))) await dropIndex(collection, index as string, log);
    }
    const there = new Set(found.filter((each) => isWanted(each, wanted)).map(({ key }) => keyText(key as Keys)));
    const missing = [...wanted].filter(([text]) => !there.has(text)).map(([, spec]) => spec);
    // The command itself, as the driver's method cannot say a quorum for all servers.
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
}

/** Indexes over the same fields are one in the database, whatever they are called where they are declared. */
function indexOf(fields: readonly string[]): [string, IndexSpec] {
  const key = indexKeys(fields);
  return [keyText(key), { name: `${ownPrefix}${fields.join(',')}`, key }];
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
  return wanted.has(keyText(index['key'] as Keys)) && !foreignOptions.some((option) => Boolean(index[option]));
}

/** Keys in their order, which counts. */
function keyText(keys: Keys): string {
  return JSON.stringify(Object.entries(keys).map(([field, direction]) => [field, Number(direction)]));
}

async function dropIndex(collection: Collection, index: string, log: Log): Promise<void> {
  log.info({ collection: collection.collectionName, index }, 'Removing an index that is not declared any more');
  try {
    await collection.dropIndex(index);
  } catch (error) {
    if (!hasCode(error, indexNotFound)) throw error;
  }
}

function hasCode(error: unknown, code: number): boolean {
  return error instanceof MongoServerError && error.code === code;
}
