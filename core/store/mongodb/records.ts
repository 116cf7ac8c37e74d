/**
 * Documents in their collection, and the writes to them. Each write has an ID, which shows after a broken connection whether the
 * write happened, also on servers without retryable writes. Each write addresses one `_id`, so collections can be sharded by its hash.
 */
import { ObjectId } from 'mongodb';
import type { Collection, Condition } from 'mongodb';
import { Batches } from './batches.ts';
import type { Outcome } from './batches.ts';
import type { MongoFields } from './document.ts';
import { bulkOutcome, isDuplicate, isUncertain } from './errors.ts';
import { StoreError } from '../store.ts';

export interface MongoRecord {
  readonly _id: string;
  /** The ID of the last write. Not a counter: a document that is deleted and inserted again must have a new version. */
  readonly version: ObjectId;
  /** The ID of the insertion. */
  readonly born: ObjectId;
  readonly document: MongoFields;
}

/** A collection with its batches of reads and inserts. */
export interface MongoRecords {
  readonly collection: Collection<MongoRecord>;
  readonly reads: Batches<string, MongoRecord | undefined>;
  /** Resolve to whether the ID was free. */
  readonly inserts: Batches<MongoRecord, boolean>;
}

/**
 * Measured on one core with 32 callers: with one batch at a time a caller often waits for two round trips; with many batches the
 * driver's work per batch dominates again. The size bounds the memory of a batch.
 */
const batches = { atOnce: 2, size: 64 };

export function recordsOf(collection: Collection<MongoRecord>): MongoRecords {
  return {
    collection,
    reads: new Batches(async (ids) => await readAll(collection, ids), batches),
    inserts: new Batches(async (records) => await insertAll(collection, records), batches),
  };
}

/** Inserts a document. @returns whether the ID was free */
export async function insertRecord(
  { collection, inserts }: MongoRecords,
  id: string,
  document: MongoFields,
): Promise<boolean> {
  const born = new ObjectId();
  const record: MongoRecord = { _id: id, version: born, born, document };
  const insert = async () => await inserts.ask(record);
  return await retryUncertain(insert, async () => {
    if (await insert()) return true;
    // Written again, so that a majority confirms it. If it was changed meanwhile, that change was confirmed.
    const { matchedCount } = await collection.replaceOne({ _id: id, version: born }, record);
    return matchedCount > 0 || (await collection.countDocuments({ _id: id, born }, { limit: 1 })) > 0;
  });
}

/** Replaces a document if it is unchanged since it was read. @returns whether it was unchanged */
export async function replaceRecord(
  { collection }: MongoRecords,
  before: MongoRecord,
  document: MongoFields,
): Promise<boolean> {
  const { _id, born } = before;
  const record: MongoRecord = { _id, version: new ObjectId(), born, document };
  const replace = async (version: Condition<ObjectId>) =>
    (await collection.replaceOne({ _id, version }, record)).matchedCount > 0;
  return await retryUncertain(
    async () => await replace(before.version),
    async () => {
      if (await replace({ $in: [before.version, record.version] })) return true;
      throw unknownResult('changed');
    },
  );
}

/** Deletes a document if it is unchanged since it was read. @returns whether it was unchanged */
export async function removeRecord({ collection }: MongoRecords, before: MongoRecord): Promise<boolean> {
  const { _id, version, born } = before;
  const remove = async () => (await collection.deleteOne({ _id, version })).deletedCount > 0;
  return await retryUncertain(remove, async () => {
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

/** Runs a write. If its result is unknown, runs `retry`, which determines it. */
async function retryUncertain(write: () => Promise<boolean>, retry: () => Promise<boolean>): Promise<boolean> {
  try {
    return await write();
  } catch (error) {
    if (!isUncertain(error)) throw error;
    return await retry();
  }
}

/** Another process may have written or deleted the document since. */
function unknownResult(what: string): StoreError {
  const message = `The connection broke while a document was being ${what}, so whether that happened is unknown`;
  return new StoreError('unavailable', message);
}
