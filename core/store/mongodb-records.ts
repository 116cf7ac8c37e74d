/**
 * Documents in their collection, and the writes to them. Each write carries an ID of its own, so that after a connection
 * broke it can be found out whether it happened: on servers that retry by themselves, and on those that cannot.
 * Each write addresses one `_id`, so collections can be sharded by it.
 */
import { ObjectId } from 'mongodb';
import type { Collection, Condition } from 'mongodb';
import { Batches } from './batches.ts';
import type { Outcome } from './batches.ts';
import type { MongoFields } from './mongodb-document.ts';
import { bulkOutcome, isDuplicate, isUncertain } from './mongodb-errors.ts';
import { StoreError } from './store.ts';

export interface MongoRecord {
  readonly _id: string;
  /** Of the last write. Not a counter: a document that was deleted and made anew must not have the version of the old one. */
  readonly version: ObjectId;
  /** Of the insertion. */
  readonly born: ObjectId;
  readonly document: MongoFields;
}

/** A collection, and the ways into it that serve many at once. */
export interface MongoRecords {
  readonly collection: Collection<MongoRecord>;
  readonly reads: Batches<string, MongoRecord | undefined>;
  /** Whether the ID was free. */
  readonly inserts: Batches<MongoRecord, boolean>;
}

/**
 * Measured on one core with 32 callers: with one batch at a time a caller often waits for two round trips, with many the
 * driver's work for each of them is back, which is most of what a request costs. A batch is bounded for its memory.
 */
const batches = { atOnce: 2, size: 64 };

export function recordsOf(collection: Collection<MongoRecord>): MongoRecords {
  return {
    collection,
    reads: new Batches(async (ids) => await readAll(collection, ids), batches),
    inserts: new Batches(async (records) => await insertAll(collection, records), batches),
  };
}

/** Inserts a document. @returns whether the ID was free. */
export async function insertRecord(
  { collection, inserts }: MongoRecords,
  id: string,
  document: MongoFields,
): Promise<boolean> {
  const born = new ObjectId();
  const record: MongoRecord = { _id: id, version: born, born, document };
  const insert = async () => await inserts.ask(record);
  return await twice(insert, async () => {
    if (await insert()) return true;
    // Written once more, so that a majority confirms it. If it was changed already, whoever did that saw to it.
    const { matchedCount } = await collection.replaceOne({ _id: id, version: born }, record);
    return matchedCount > 0 || (await collection.countDocuments({ _id: id, born }, { limit: 1 })) > 0;
  });
}

/** Replaces a document, if it is still as it was read. @returns whether it was. */
export async function replaceRecord(
  { collection }: MongoRecords,
  before: MongoRecord,
  document: MongoFields,
): Promise<boolean> {
  const { _id, born } = before;
  const record: MongoRecord = { _id, version: new ObjectId(), born, document };
  const replace = async (version: Condition<ObjectId>) =>
    (await collection.replaceOne({ _id, version }, record)).matchedCount > 0;
  return await twice(
    async () => await replace(before.version),
    async () => {
      if (await replace({ $in: [before.version, record.version] })) return true;
      throw unknownResult('changed');
    },
  );
}

/** Deletes a document, if it is still as it was read. @returns whether it was. */
export async function removeRecord({ collection }: MongoRecords, before: MongoRecord): Promise<boolean> {
  const { _id, version, born } = before;
  const remove = async () => (await collection.deleteOne({ _id, version })).deletedCount > 0;
  return await twice(remove, async () => {
    if (await remove()) return true;
    if ((await collection.countDocuments({ _id, born }, { limit: 1 })) > 0) return false;
    throw unknownResult('deleted');
  });
}

async function readAll(
  collection: Collection<MongoRecord>,
  ids: readonly string[],
): Promise<Outcome<MongoRecord | undefined>[]> {
  const wanted = [...new Set(ids)];
  const found = await collection.find({ _id: { $in: wanted } }).toArray();
  const byId = new Map(found.map((record) => [record._id, record]));
  return ids.map((id) => ({ answer: byId.get(id) }));
}

async function insertAll(
  collection: Collection<MongoRecord>,
  records: readonly MongoRecord[],
): Promise<Outcome<boolean>[]> {
  try {
    await collection.insertMany(records, { ordered: false });
    return records.map(() => ({ answer: true }));
  } catch (error) {
    return records.map((_record, index) => {
      const outcome = bulkOutcome(error, index);
      return isDuplicate(outcome) ? { answer: false } : outcome === undefined ? { answer: true } : { error: outcome };
    });
  }
}

/** Runs a write, and if its result is unknown, once more in a way that finds it out. */
async function twice(write: () => Promise<boolean>, again: () => Promise<boolean>): Promise<boolean> {
  try {
    return await write();
  } catch (error) {
    if (!isUncertain(error)) throw error;
    return await again();
  }
}

/** Somebody else wrote since. Either our write came before theirs or it did not happen; nothing tells which. */
function unknownResult(what: string): StoreError {
  const message = `The connection broke while a document was ${what}, and it was written to since: it may have happened`;
  return new StoreError('unavailable', message);
}
