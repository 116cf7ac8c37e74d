/** Several processes that use the same blobs, some of which die. */
import { randomBytes, randomUUID } from 'node:crypto';
import { readdir } from 'node:fs/promises';
import { buffer } from 'node:stream/consumers';
import { GridFSBucket, MongoClient } from 'mongodb';
import type { Readable } from 'node:stream';
import { expect, test } from 'vitest';
import { bytesOf, copied } from '../../../test/kit/registry/byte-source.ts';
import { sha256 } from '../../../test/kit/registry/digests.ts';
import { runUntilKilled } from '../../../test/crash/killed-child.ts';
import { describeOnMongo } from '../../../test/kit/servers/mongodb-tests.ts';
import { testMongo } from '../../../test/kit/servers/mongodb.ts';
import type { TestDatabase } from '../../../test/kit/servers/mongodb.ts';
import { temporaryFolder } from '../../../test/kit/machine/temporary-folder.ts';
import { silentLog } from '../../log/log.ts';
import type { Blobs, OpenBlob } from '../blobs.ts';
import { layoutOf } from './layout.ts';
import type { BlobRecord, Layout, UploadRecord } from './layout.ts';
import { readFile } from './reader.ts';
import { scheduleDeletion, emptyTrash } from './trash.ts';
import { openGridFsBlobs } from './gridfs.ts';
import { hashing } from '../../../test/kit/registry/hashing.ts';

const log = silentLog();
const killedRounds = 3;

/** Small, so that few bytes are several chunks. */
const chunkBytes = 1_000;

await describeOnMongo('GridFS, shared', testMongo, (mongo) => {
  const open = async ({ url, database }: TestDatabase) =>
    await openGridFsBlobs({ hashing, url, database, log, chunkBytes });

  test('An upload continues in another process, at any position in a chunk', async () => {
    await using database = mongo.newDatabase();
    await using one = await open(database);
    await using other = await open(database);
    const bytes = randomBytes(12_345);
    await one.createUpload('one');
    let offset = 0;
    for (const [i, count] of [1, 998, 1, 1, 2_000, 999, 0, 3_500, 4_845].entries()) {
      const part = bytes.subarray(offset, offset + count);
      offset = await (i % 2 ? one : other).appendUpload('one', offset, bytesOf(part));
      expect(await other.statUpload('one')).toMatchObject({ sizeBytes: offset });
      const digest = sha256(bytes.subarray(0, offset));
      expect(await one.digestUpload('one', 'sha256')).toStrictEqual({ sizeBytes: offset, digest });
    }
    await other.publishUpload('one', sha256(bytes));
    expect(await one.stat(sha256(bytes))).toMatchObject({ sizeBytes: 12_345 });
    expect(await buffer((await one.read(sha256(bytes))) as Readable)).toStrictEqual(bytes);
  });

  test('Only one process at a time appends to an upload', async () => {
    await using database = mongo.newDatabase();
    await using one = await open(database);
    await using other = await open(database);
    await one.createUpload('one');
    const appends = [one, other, one, other].map(
      async (blobs) => await blobs.appendUpload('one', 0, bytesOf(randomBytes(2_500))),
    );
    const outcomes = await Promise.allSettled(appends);
    const refused = outcomes.flatMap((outcome) =>
      outcome.status === 'rejected' ? [(outcome.reason as { code: string }).code] : [],
    );
    expect(refused).toHaveLength(3);
    for (const code of refused) expect(['upload-busy', 'wrong-offset']).toContain(code);
    expect(await one.statUpload('one')).toMatchObject({ sizeBytes: 2_500 });
  });

  test('Processes that publish one digest at the same time leave one blob, and its bytes once', async () => {
    await using database = mongo.newDatabase();
    await using layout = openLayout(database);
    await using one = await open(database);
    await using other = await open(database);
    const bytes = randomBytes(5_500);
    await Promise.all(Array.from({ length: 8 }, async (_, i) => await publish(i % 2 ? one : other, bytes)));
    expect(await buffer((await one.read(sha256(bytes))) as Readable)).toStrictEqual(bytes);
    await emptyTrash(layout, { graceMs: -1_000, log, signal: AbortSignal.timeout(60_000) });
    expect(await buffer((await one.read(sha256(bytes))) as Readable)).toStrictEqual(bytes);
    expect(await counts(layout)).toStrictEqual({ digests: 1, uploads: 0, trash: 0, files: 1, chunks: 6 });
  });

  test('A writer whose lease has expired loses the upload, and cannot change the bytes of its successor', async () => {
    await using database = mongo.newDatabase();
    await using layout = openLayout(database);
    await using slow = await open(database);
    await using quick = await open(database);
    await slow.createUpload('one');
    await slow.appendUpload('one', 0, bytesOf(Buffer.alloc(1_500, 'a')));
    const hang = Promise.withResolvers<void>();
    const hangs = Promise.withResolvers<void>();
    async function* stalling(): AsyncGenerator<readonly Uint8Array[]> {
      yield [Buffer.alloc(200, 'x')];
      hangs.resolve();
      await hang.promise;
      yield [Buffer.alloc(5_000, 'x')];
    }
    const append = slow.appendUpload('one', 1_500, stalling());
    await hangs.promise;
    await ageLease(layout, 'one');
    const rest = Buffer.alloc(3_000, 'b');
    expect(await quick.appendUpload('one', 1_500, bytesOf(rest))).toBe(4_500);
    hang.resolve();
    await expect(append).rejects.toMatchObject({ name: 'BlobsError', code: 'upload-busy' });
    const whole = Buffer.concat([Buffer.alloc(1_500, 'a'), rest]);
    await quick.publishUpload('one', sha256(whole));
    expect(await buffer((await quick.read(sha256(whole))) as Readable)).toStrictEqual(whole);
  });

  test('The bytes of deleted blobs are removed later, those of a file with a name never', async () => {
    await using database = mongo.newDatabase();
    await using layout = openLayout(database);
    await using blobs = await open(database);
    const kept = randomBytes(2_500);
    const deleted = randomBytes(2_500);
    await publish(blobs, kept);
    await publish(blobs, deleted);
    await blobs.createUpload('gone');
    await blobs.appendUpload('gone', 0, bytesOf(deleted));
    const reading = (await blobs.read(sha256(deleted))) as Readable;
    await blobs.delete(sha256(deleted));
    await blobs.deleteUpload('gone');
    // As a crash between two steps leaves it: in the trash, and still named.
    await scheduleDeletion(layout, ((await layout.digests.findOne({ _id: sha256(kept) })) as BlobRecord).file);
    const signal = AbortSignal.timeout(60_000);
    expect(await emptyTrash(layout, { graceMs: 60_000, log, signal })).toBe(0);
    expect(await buffer(reading)).toStrictEqual(deleted);
    expect(await emptyTrash(layout, { graceMs: -1_000, log, signal })).toBe(2);
    expect(await counts(layout)).toStrictEqual({ digests: 1, uploads: 0, trash: 0, files: 1, chunks: 3 });
    expect(await buffer((await blobs.read(sha256(kept))) as Readable)).toStrictEqual(kept);
  });

  test('An upload that was published before a crash does not exist', async () => {
    await using database = mongo.newDatabase();
    await using layout = openLayout(database);
    await using blobs = await open(database);
    const bytes = randomBytes(1_500);
    const signal = AbortSignal.timeout(60_000);
    for (const look of [
      async () => expect(await blobs.statUpload('one')).toBeUndefined(),
      async () => await expect(append(blobs, 'one', 1_500)).rejects.toMatchObject({ code: 'upload-unknown' }),
      async () => expect(await emptyTrash(layout, { graceMs: 60_000, log, signal })).toBe(0),
    ]) {
      await blobs.createUpload('one');
      await blobs.appendUpload('one', 0, bytesOf(bytes));
      const upload = await layout.uploads.findOne({ _id: 'one' });
      await blobs.publishUpload('one', sha256(bytes));
      await layout.uploads.insertOne({ ...(upload as NonNullable<typeof upload>), publishing: sha256(bytes) });
      await look();
      expect(await layout.uploads.countDocuments({})).toBe(0);
      expect(await blobs.delete(sha256(bytes))).toBe(true);
    }
  });

  test('A copy on the disk is used only while MongoDB has the blob', async () => {
    await using database = mongo.newDatabase();
    await using layout = openLayout(database);
    await using folder = await temporaryFolder();
    const { url } = database;
    const cache = { folder: folder.path, maxBytes: 10 * 1024 * 1024, freeShare: 0 };
    await using near = await openGridFsBlobs({ hashing, url, database: database.database, log, cache });
    await using other = await openGridFsBlobs({ hashing, url, database: database.database, log });
    const bytes = randomBytes(1024 * 1024 + 17);
    const digest = sha256(bytes);
    const copies = async () => (await namesIn(folder.path)).filter((name) => !name.endsWith('.part'));
    const pull = async (): Promise<Buffer> => {
      await using blob = (await near.open(digest)) as OpenBlob;
      return await copied(blob);
    };
    await publish(other, bytes);
    await expect.poll(async () => (await pull()) && (await copies())).toHaveLength(1);
    await layout.chunks.deleteMany({});
    expect((await pull()).equals(bytes)).toBe(true);
    await other.delete(digest);
    expect(await near.open(digest)).toBeUndefined();
    expect(await copies()).toEqual([]);
    await publish(other, bytes);
    expect((await pull()).equals(bytes)).toBe(true);
  });

  test('Standard tools can read published blobs', async () => {
    await using database = mongo.newDatabase();
    await using client = new MongoClient(database.url);
    await using blobs = await open(database);
    const bytes = randomBytes(3_333);
    await publish(blobs, bytes);
    const bucket = new GridFSBucket(client.db(database.database), { bucketName: 'blobs' });
    expect(await buffer(bucket.openDownloadStreamByName(sha256(bytes)))).toStrictEqual(bytes);
  });

  test('After kill -9, GridFS has every published blob and no incomplete one, and continues the uploads', async () => {
    await using database = mongo.newDatabase();
    await using layout = openLayout(database);
    const published = new Set<string>();

    for (let round = 0; round < killedRounds; round += 1) {
      const lines = await runUntilKilled('blob-writer-child.ts', [database.url, database.database], 5 + round * 7);
      for (const digest of lines) published.add(digest);
      await using blobs = await open(database);
      const listed = new Set<string>();
      for await (const digest of blobs.list()) {
        expect(sha256(await buffer((await blobs.read(digest)) as Readable))).toBe(digest);
        listed.add(digest);
      }
      expect([...published].filter((digest) => !listed.has(digest))).toStrictEqual([]);
      for await (const uploadId of blobs.listUploads()) {
        await ageLease(layout, uploadId);
        const { sizeBytes } = (await blobs.statUpload(uploadId)) ?? {};
        if (sizeBytes === undefined) continue;
        const upload = await layout.uploads.findOne({ _id: uploadId });
        const before = await buffer(readFile(layout, upload as UploadRecord));
        expect(before).toHaveLength(sizeBytes);
        const bytes = Buffer.concat([before, randomBytes(100_000)]);
        await blobs.appendUpload(uploadId, sizeBytes, bytesOf(bytes.subarray(sizeBytes)));
        await blobs.publishUpload(uploadId, sha256(bytes));
        expect(await buffer((await blobs.read(sha256(bytes))) as Readable)).toStrictEqual(bytes);
      }
    }
  });
});

function openLayout({ url, database }: TestDatabase): Layout & AsyncDisposable {
  const client = new MongoClient(url);
  return { ...layoutOf(client.db(database)), [Symbol.asyncDispose]: async () => await client.close() };
}

/** Makes the lease of an upload expire, as if its holder had been silent for long. */
async function ageLease({ uploads }: Layout, uploadId: string): Promise<void> {
  await uploads.updateOne({ _id: uploadId, holder: { $ne: null } } as object, { $set: { heldAt: new Date(0) } });
}

async function counts({ digests, uploads, trash, files, chunks }: Layout): Promise<Record<string, number>> {
  const collections = Object.entries({ digests, uploads, trash, files, chunks });
  const counted = collections.map(async ([name, each]) => [name, await each.countDocuments({})] as const);
  return Object.fromEntries(await Promise.all(counted));
}

async function append(blobs: Blobs, uploadId: string, offset: number): Promise<number> {
  return await blobs.appendUpload(uploadId, offset, bytesOf(Buffer.from('x')));
}

async function publish(blobs: Blobs, bytes: Uint8Array): Promise<void> {
  const uploadId = randomUUID();
  await blobs.createUpload(uploadId);
  await blobs.appendUpload(uploadId, 0, bytesOf(bytes));
  await blobs.publishUpload(uploadId, sha256(bytes));
}

/** The names of all files in a folder and its subfolders. */
async function namesIn(folder: string): Promise<string[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  return entries.filter((entry) => entry.isFile()).map(({ name }) => name);
}
