/**
 * Blobs in MongoDB:
 *
 *     blobs.digests   _id: sha256:9f86d081…   file, sizeBytes, …                  the published blobs
 *     blobs.uploads   _id: 3fc1a0…            file, sizeBytes, touchedAt, lease   the uploads
 *     blobs.trash     _id: a file             scheduledAt                         files to delete, unless they have a name
 *     blobs.files     _id: a file             length, filename: its digest        ┐ GridFS, for standard tools
 *     blobs.chunks    _id: a file and n       files_id, n, data                   ┘ (mongofiles --prefix blobs)
 *
 * An upload has a file from the start; publishing it gives that file a digest as its name, so bytes are written once. Each step is
 * one write to one document, addressed by its `_id`, a chunk by `files_id` and `n`: the chunks can be sharded by these, the
 * other collections by `_id`. A crash between two steps is repaired later:
 *
 *     publish   mark the upload with the digest → files → digests (now it is visible) → remove the upload
 *     delete    trash → delete the name (digests or uploads) → an hour later chunks, files, trash
 *
 * An upload whose mark names a blob with the same file was published; any process that reads it deletes it. A file in the trash
 * that still has a name is kept.
 */
import type { Collection, Db, Long, ObjectId } from 'mongodb';

export interface BlobRecord {
  readonly _id: string;
  readonly file: ObjectId;
  readonly sizeBytes: number;
  readonly chunkBytes: number;
  /** Changes when the blob is renewed. */
  readonly generation: ObjectId;
}

export interface UploadRecord {
  readonly _id: string;
  readonly file: ObjectId;
  /** How many bytes from the start are durable. A writer that died may have left chunks beyond them. */
  readonly sizeBytes: number;
  readonly chunkBytes: number;
  readonly touchedAt: Date;
  /** The holder of the upload's lease, and when it last renewed it. */
  readonly holder?: ObjectId;
  readonly heldAt?: Date;
  /** The digest under which the upload is being published, or was published before a crash. */
  readonly publishing?: string;
}

export interface TrashRecord {
  /** A file. */
  readonly _id: ObjectId;
  /** The upload whose file it was. */
  readonly upload?: string;
  /** When the deletion was scheduled or last postponed. */
  readonly scheduledAt: Date;
}

/** As in GridFS. */
export interface FileRecord {
  readonly _id: ObjectId;
  readonly length: Long;
  readonly chunkSize: number;
  readonly uploadDate: Date;
  readonly filename: string;
}

/** As in GridFS, plus `append`; the `_id` does not depend on the writer. */
export interface ChunkRecord {
  readonly _id: string;
  readonly files_id: ObjectId;
  readonly n: number;
  readonly data: Uint8Array;
  /** The lease of the append that wrote it. */
  readonly append: ObjectId;
}

export interface Layout {
  readonly digests: Collection<BlobRecord>;
  readonly uploads: Collection<UploadRecord>;
  readonly trash: Collection<TrashRecord>;
  readonly files: Collection<FileRecord>;
  readonly chunks: Collection<ChunkRecord>;
}

/** The collections of blobs in a database. */
export function layoutOf(db: Db): Layout {
  return {
    digests: db.collection<BlobRecord>('blobs.digests'),
    uploads: db.collection<UploadRecord>('blobs.uploads'),
    trash: db.collection<TrashRecord>('blobs.trash'),
    files: db.collection<FileRecord>('blobs.files'),
    chunks: db.collection<ChunkRecord>('blobs.chunks'),
  };
}

/** Creates the index that GridFS prescribes for chunks. */
export async function makeChunkIndex(db: Db): Promise<void> {
  await layoutOf(db).chunks.createIndex({ files_id: 1, n: 1 }, { unique: true });
}

/** The key of a chunk: the fields of GridFS's index, by which the collection may be sharded. */
export function chunkKey(file: ObjectId, n: number): Pick<ChunkRecord, 'files_id' | 'n'> {
  return { files_id: file, n };
}

/** The ID of a chunk. */
export function chunkId(file: ObjectId, n: number): string {
  return `${file.toHexString()}:${n}`;
}

/** How many names one query returns. */
const namesAtATime = 1_000;

/** A collection whose documents are named by their IDs. */
interface Names {
  find(
    filter: { readonly _id: { readonly $gt: string } },
    options: object,
  ): { toArray(): Promise<{ readonly _id: string }[]> };
}

type Page = readonly { readonly _id: string }[];

/**
 * The IDs in a collection, read page by page with `run`. Not with a cursor, which the server closes if the caller is slow.
 */
export async function* namesIn(
  collection: Names,
  run: (page: () => Promise<Page>) => Promise<Page>,
): AsyncGenerator<string> {
  const options = { projection: { _id: 1 }, sort: { _id: 1 }, limit: namesAtATime };
  let after = '';
  for (;;) {
    const from = after;
    const page = await run(async () => await collection.find({ _id: { $gt: from } }, options).toArray());
    for (const { _id } of page) yield _id;
    if (page.length < namesAtATime) return;
    after = page.at(-1)?._id ?? after;
  }
}
