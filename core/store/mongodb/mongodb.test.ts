import { describeOnMongo } from '../../../test/kit/servers/mongodb-tests.ts';
import { testMongo } from '../../../test/kit/servers/mongodb.ts';
import { describeStore } from '../../../test/suites/store-suite.ts';
import { silentLog } from '../../log/log.ts';
import { openMongoStore } from './mongodb.ts';

await describeOnMongo('MongoDB', testMongo, (mongo) => {
  describeStore('MongoDB', async () => {
    const { url, database, ...drop } = mongo.newDatabase();
    return { open: (collections) => openMongoStore({ url, database, collections, log: silentLog() }), ...drop };
  });
});
