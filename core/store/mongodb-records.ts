/**
 * Documents in their collection, and the writes to them. Each write carries an ID of its own, so that after a connection
 * broke it can be found out whether it happened: on servers that retry by themselves, and on those that cannot.
 * Each write addresses one `_id`, so collections can be sharded by it.
 */
import { ObjectId } from 'mongodb';
import type { Collection, Condition } from 'mongodb';
import type { MongoFields } from './mongodb-document.ts';
import { isDuplicate, isUncertain } from './mongodb-errors.ts';
import { StoreError } from './store.ts';

export interface MongoRecord {
  readonly _id: string;
  /** Of the last write. Not a counter: a document that was deleted and made anew must not have the version of the old one. */
  readonly version: ObjectId;
  /** Of the insertion. */
  readonly born: ObjectId;
  readonly document: MongoFields;
}

export type MongoRecords = Collection<MongoRecord>;

/** Inserts a document. @returns whether the ID was free. */
export async function insertRecord(records: MongoRecords, id: string, document: MongoFields): Promise<boolean> {
  const born = new ObjectId();
  const record: MongoRecord = { _id: id, version: born, born, document };
  const insert = async () =>
    await records.insertOne(record).then(
      () => true,
      (error: unknown) => {
        if (isDuplicate(error)) return false;
        throw error;
      },
    );
  return await twice(insert, async () => {
    if (await insert()) return true;
    // Written once more, so that a majority confirms it. If it was changed already, whoever did that saw to it.
    const { matchedCount } = await records.replaceOne({ _id: id, version: born }, record);
    return matchedCount > 0 || (await records.countDocuments({ _id: id, born }, { limit: 1 })) > 0;
  });
}

/** Replaces a document, if it is still as it was read. @returns whether it was. */
export async function replaceRecord(
  records: MongoRecords,
  before: MongoRecord,
  document: MongoFields,
): Promise<boolean> {
  const { _id, born } = before;
  const record: MongoRecord = { _id, version: new ObjectId(), born, document };
  const replace = async (version: Condition<ObjectId>) =>
    (await records.replaceOne({ _id, version }, record)).matchedCount > 0;
  return await twice(
    async () => await replace(before.version),
    async () => {
      if (await replace({ $in: [before.version, record.version] })) return true;
      throw unknownResult('changed');
    },
  );
}

/** Deletes a document, if it is still as it was read. @returns whether it was. */
export async function removeRecord(records: MongoRecords, before: MongoRecord): Promise<boolean> {
  const { _id, version, born } = before;
  const remove = async () => (await records.deleteOne({ _id, version })).deletedCount > 0;
  return await twice(remove, async () => {
    if (await remove()) return true;
    if ((await records.countDocuments({ _id, born }, { limit: 1 })) > 0) return false;
    throw unknownResult('deleted');
  });
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
