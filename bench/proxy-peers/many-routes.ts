/** Berth's proxy alone with many routes, on the embedded store or on MongoDB. */
import { writeFile } from 'node:fs/promises';
import { silentLog } from '../../core/log/log.ts';
import { openMongoStore } from '../../core/store/mongodb/mongodb.ts';
import { openSqliteStore } from '../../core/store/sqlite/sqlite.ts';
import { backends } from '../../model/backend.ts';
import { nodes } from '../../model/node.ts';
import { newRoute, routes } from '../../model/route.ts';
import { proxies, traffic } from '../../model/traffic.ts';
import { openFixture, spawnReady } from '../../proxy/testing/fixture.ts';
import type { Session } from '../../proxy/testing/fixture.ts';
import { newToken } from '../../proxy/testing/token.ts';
import { temporaryFolder } from '../../test/kit/machine/temporary-folder.ts';

const [backendPort = '', count = '1', tokensFile = '', mongodbUrl] = process.argv.slice(2);
const log = silentLog();
const collections = [backends, nodes, routes, traffic, proxies];
const database = `berth-bench-routes-${process.pid}`;
await using folder = await temporaryFolder();
// Not `openTestStore`, which would delete each document at the end, and keep the store open.
await using store =
  mongodbUrl === undefined
    ? await openSqliteStore({ folder: folder.path, collections, log })
    : await openMongoStore({ url: mongodbUrl, database, collections, log });
await using fixture = await openFixture({ log, store });
const at = { address: { host: '127.0.0.1', port: Number(backendPort) } };
const sessions: Session[] = [];
for (let i = 0; i < Math.min(100, Number(count)); i += 1) sessions.push(await spawnReady(fixture, at));
const tokens = sessions.map(({ token }) => token);
const adding = async () => {
  while (tokens.length < Number(count)) {
    const token = newToken();
    const { backend } = sessions[tokens.length % sessions.length] ?? { backend: '' };
    tokens.push(token);
    await store.insert(routes, newRoute(token, { backend, user: `user-${tokens.length}` }));
  }
};
await Promise.all(Array.from({ length: 64 }, adding));
await writeFile(tokensFile, JSON.stringify(tokens));
process.stdout.write(JSON.stringify({ port: fixture.port }));
await new Promise((resolve) => process.once('SIGTERM', resolve));
