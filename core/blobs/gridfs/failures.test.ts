// Takes about 20 s
/** Blobs whose database stops, or whose answers are lost. */
import { createHash, randomBytes } from 'node:crypto';
import { buffer } from 'node:stream/consumers';
import type { Readable } from 'node:stream';
import { expect, test } from 'vitest';
import { bytesOf } from '../../../test/kit/registry/byte-source.ts';
import { openRelay } from '../../../test/kit/servers/mongodb-relay.ts';
import { describeOnMongo } from '../../../test/kit/servers/mongodb-tests.ts';
import { stoppableMongo } from '../../../test/kit/servers/mongodb.ts';
import { silentLog } from '../../log/log.ts';
import { openGridFsBlobs } from './gridfs.ts';
import { hashing } from '../../../test/kit/registry/hashing.ts';

const log = silentLog();
const chunkBytes = 100_000;
const bytes = randomBytes(1_000_000);
const digest = `sha256:${createHash('sha256').update(bytes).digest('hex')}`;

await describeOnMongo('GridFS, failing', stoppableMongo, (mongo) => {
  test(
    'An upload survives a restart of its database, and continues after the acknowledged bytes',
    { timeout: 120_000 },
    async () => {
      await using database = mongo.newDatabase();
      await using blobs = await openGridFsBlobs({ hashing, ...database, log, chunkBytes });
      await blobs.createUpload('one');
      await blobs.appendUpload('one', 0, bytesOf(bytes.subarray(0, 450_000)));
      async function* interrupted(): AsyncGenerator<readonly Uint8Array[]> {
        yield [bytes.subarray(450_000, 500_000)];
        await mongo.stop();
        yield [bytes.subarray(500_000)];
      }
      const append = blobs.appendUpload('one', 450_000, interrupted());
      await expect(append).rejects.toMatchObject({ name: 'BlobsError', code: 'unavailable' });
      await expect(blobs.ping()).rejects.toMatchObject({ code: 'unavailable' });
      await expect(blobs.read(digest)).rejects.toMatchObject({ code: 'unavailable' });
      await mongo.start();
      const isFree = async () => {
        const { sizeBytes } = (await blobs.statUpload('one')) ?? {};
        return await blobs.appendUpload('one', sizeBytes ?? 0, bytesOf(bytes.subarray(sizeBytes)));
      };
      // The lease of the interrupted append ends some seconds later.
      await expect.poll(isFree, { timeout: 60_000, interval: 500 }).toBe(bytes.length);
      await blobs.publishUpload('one', digest);
      expect(await buffer((await blobs.read(digest)) as Readable)).toStrictEqual(bytes);
    },
  );

  test('Each step whose answer is lost happens once', async () => {
    await using database = mongo.newDatabase();
    await using relay = await openRelay(mongo.url);
    await using blobs = await openGridFsBlobs({ hashing, ...database, url: relay.url, log, chunkBytes });
    relay.dropAnswerTo('insert');
    await blobs.createUpload('one');
    relay.dropAnswerTo('findAndModify');
    await blobs.appendUpload('one', 0, bytesOf(bytes.subarray(0, 250_000)));
    relay.dropAnswerTo('insert');
    await blobs.appendUpload('one', 250_000, bytesOf(bytes.subarray(250_000)));
    relay.dropAnswerTo('insert');
    await blobs.publishUpload('one', digest);
    expect(await blobs.stat(digest)).toMatchObject({ sizeBytes: bytes.length });
    expect(await blobs.statUpload('one')).toBeUndefined();
    relay.dropAnswerTo('find');
    expect(await buffer((await blobs.read(digest)) as Readable)).toStrictEqual(bytes);
    relay.dropAnswerTo('delete');
    expect(await blobs.delete(digest)).toBe(true);
    expect(await blobs.stat(digest)).toBeUndefined();
    expect(relay.dropped).toBe(6);
  });
});
