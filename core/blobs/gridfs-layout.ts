/**
 * Blobs in MongoDB:
 *
 *     blobs.digests   _id: sha256:9f86d081…   file, sizeBytes, …                  a blob: what is not here is not published
 *     blobs.uploads   _id: 3fc1a0…            file, sizeBytes, touchedAt, lease   what is still being received
 *     blobs.trash     _id: a file             doomedAt                            chunks to be removed, if nothing has them
 *     blobs.files     _id: a file             length, filename: its digest        ┐ GridFS, for whoever reads it by standard
 *     blobs.chunks    _id: a file and n       files_id, n, data                   ┘ tools (mongofiles --prefix blobs)
 *
 * An upload has a file of its own from the start; publishing it names that file under a digest, so bytes are written once.
 * Each step is one write to one document, addressed by its `_id`, a chunk by `files_id` and `n`: that collection can be
 * sharded by these, the others by `_id`. What a crash leaves between two steps is found again:
 *
 *     publish   mark the upload with the digest → files → digests (now it is visible) → remove the upload
 *     remove    trash → take away the name (digests or uploads) → an hour later chunks, files, trash
 *
 * An upload whose mark names a blob with the same file was published, and is removed by whoever sees it. What is in the trash
 * and still has its name is kept.
 */
import type { Collection, Db, Long, ObjectId } from 'mongodb';

export interface BlobRecord {
  readonly _id: string;
  readonly file: ObjectId;
  readonly sizeBytes: number;
  readonly chunkBytes: number;
  /** Another one when it is renewed. */
  readonly generation: ObjectId;
}

export interface UploadRecord {
  readonly _id: string;
  readonly file: ObjectId;
  /** Bytes that are durable and in a row. There may be chunks beyond, of a writer that died. */
  readonly sizeBytes: number;
  readonly chunkBytes: number;
  readonly touchedAt: Date;
  /** Who has the upload to itself, and since when it said so last. */
  readonly holder?: ObjectId;
  readonly heldAt?: Date;
  /** The digest under which it was, or was to be, published. */
  readonly publishing?: string;
}

export interface TrashRecord {
  /** A file. */
  readonly _id: ObjectId;
  /** The upload whose file it was. */
  readonly upload?: string;
  readonly doomedAt: Date;
}

/** As GridFS has it. */
export interface FileRecord {
  readonly _id: ObjectId;
  readonly length: Long;
  readonly chunkSize: number;
  readonly uploadDate: Date;
  readonly filename: string;
}

/** As GridFS has it, but for `append`, and for an `_id` that is the same whoever writes the chunk. */
export interface ChunkRecord {
  readonly _id: string;
  readonly files_id: ObjectId;
  readonly n: number;
  readonly data: Uint8Array;
  /** Who wrote it: the lease of the append. */
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

/** Makes the index that GridFS prescribes for chunks. */
export async function makeChunkIndex(db: Db): Promise<void> {
  await layoutOf(db).chunks.createIndex({ files_id: 1, n: 1 }, { unique: true });
}

/** By what a chunk is found: the index that GridFS prescribes, and what its collection may be sharded by. */
export function chunkKey(file: ObjectId, n: number): Pick<ChunkRecord, 'files_id' | 'n'> {
  return { files_id: file, n };
}

/** The ID of a chunk. */
export function chunkId(file: ObjectId, n: number): string {
  return `${file.toHexString()}:${n}`;
}

/** How many names are asked for at a time. */
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
 * The IDs in a collection, page by page, each read within `run`. Not by a cursor: the server would end that if whoever goes
 * through the names takes its time.
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
