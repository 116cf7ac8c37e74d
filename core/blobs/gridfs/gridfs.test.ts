// Takes about 10 s
import { MongoClient } from 'mongodb';
import { describeOnMongo } from '../../../test/kit/servers/mongodb-tests.ts';
import { testMongo } from '../../../test/kit/servers/mongodb.ts';
import type { TestDatabase } from '../../../test/kit/servers/mongodb.ts';
import { describeBlobs } from '../../../test/suites/blobs-suite.ts';
import type { BlobsData } from '../../../test/suites/blobs/content.ts';
import { temporaryFolder } from '../../../test/kit/machine/temporary-folder.ts';
import { silentLog } from '../../log/log.ts';
import { layoutOf } from './layout.ts';
import { openGridFsBlobs } from './gridfs.ts';
import type { GridFsBlobsOptions } from './gridfs.ts';

await describeOnMongo('GridFS', testMongo, (mongo) => {
  describeBlobs('GridFS', async () => {
    const { [Symbol.asyncDispose]: drop, ...place } = mongo.newDatabase();
    return { ...dataIn(place), [Symbol.asyncDispose]: drop };
  });
  describeBlobs('GridFS with copies on the disk', async () => {
    const { [Symbol.asyncDispose]: drop, ...place } = mongo.newDatabase();
    const folder = await temporaryFolder();
    const cache = { folder: folder.path, maxBytes: 64 * 1024 * 1024, freeShare: 0 };
    const end = async () => {
      await folder[Symbol.asyncDispose]();
      await drop();
    };
    return { ...dataIn(place, { cache }), [Symbol.asyncDispose]: end };
  });
});

function dataIn(
  { url, database }: Pick<TestDatabase, 'url' | 'database'>,
  options: Pick<GridFsBlobsOptions, 'cache'> = {},
): Pick<BlobsData, 'open' | 'truncate'> {
  return {
    open: async (parts) => await openGridFsBlobs({ ...parts, url, database, ...options, log: silentLog() }),
    truncate: async (digest, sizeBytes) => {
      await using client = new MongoClient(url);
      await layoutOf(client.db(database)).digests.updateOne({ _id: digest }, { $set: { sizeBytes } });
    },
  };
}
