import { describeOnMongo } from '../../test/kit/mongodb-tests.ts';
import { testMongo } from '../../test/kit/mongodb.ts';
import { describeBlobs } from '../../test/suites/blobs-suite.ts';
import { temporaryFolder } from '../../test/suites/temporary-folder.ts';
import { silentLog } from '../log/log.ts';
import { openGridFsBlobs } from './gridfs.ts';

await describeOnMongo('GridFS', testMongo, (mongo) => {
  describeBlobs('GridFS', async () => {
    const { url, database, ...drop } = mongo.newDatabase();
    return { open: () => openGridFsBlobs({ url, database, log: silentLog() }), ...drop };
  });
  describeBlobs('GridFS with copies on the disk', async () => {
    const { url, database, ...drop } = mongo.newDatabase();
    const folder = await temporaryFolder();
    const cache = { folder: folder.path, maxBytes: 64 * 1024 * 1024, freeShare: 0 };
    const end = async () => {
      await folder[Symbol.asyncDispose]();
      await drop[Symbol.asyncDispose]();
    };
    return { open: () => openGridFsBlobs({ url, database, cache, log: silentLog() }), [Symbol.asyncDispose]: end };
  });
});
