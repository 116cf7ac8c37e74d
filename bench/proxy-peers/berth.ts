/** Berth's proxy alone: with a store, a bus and a listener, as in a process with the role `proxy`. It collects garbage on SIGUSR2. */
import { collectStartupGarbage } from '../../core/heap/collect-start.mjs';
import { silentLog } from '../../core/log/log.ts';
import { openSqliteStore } from '../../core/store/sqlite/sqlite.ts';
import { collectWithoutHelpers } from '../../main/process/heap.ts';
import { modelCollections } from '../../model/collections.ts';
import { openFixture, spawnReady } from '../../proxy/testing/fixture.ts';
import { temporaryFolder } from '../../test/kit/machine/temporary-folder.ts';

collectWithoutHelpers();
const [backendPort = '', user = '', routes = '1'] = process.argv.slice(2);
await using folder = await temporaryFolder();
await using store = await openSqliteStore({ folder: folder.path, collections: modelCollections, log: silentLog() });
await using fixture = await openFixture({ store });
const { token } = await spawnReady(fixture, { address: { host: '127.0.0.1', port: Number(backendPort) } }, { user });
for (let i = 1; i < Number(routes); i += 1) await spawnReady(fixture, { address: { host: '127.0.0.1', port: 1 } }, {});
process.on('SIGUSR2', collectStartupGarbage);
process.stdout.write(JSON.stringify({ port: fixture.port, token }));
await new Promise((resolve) => process.once('SIGTERM', resolve));
