import { describeOnMongo } from '../../test/kit/mongodb-tests.ts';
import { testMongo } from '../../test/kit/mongodb.ts';
import { describeBlobs } from '../../test/suites/blobs-suite.ts';
import { silentLog } from '../log/log.ts';
import { openGridFsBlobs } from './gridfs.ts';

await describeOnMongo('GridFS', testMongo, (mongo) => {
  describeBlobs('GridFS', async () => {
    const { url, database, ...drop } = mongo.newDatabase();
    return { open: () => openGridFsBlobs({ url, database, log: silentLog() }), ...drop };
  });
});
