/** Berth's proxy alone: with a store, a bus and a listener, as in a process with the role `proxy`. It collects garbage on SIGUSR2. */
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { openFixture, spawnReady } from '../../proxy/testing/fixture.ts';

const [backendPort = '', user = '', routes = '1'] = process.argv.slice(2);
await using fixture = await openFixture();
const { token } = await spawnReady(fixture, { address: { host: '127.0.0.1', port: Number(backendPort) } }, { user });
for (let i = 1; i < Number(routes); i += 1) await spawnReady(fixture, { address: { host: '127.0.0.1', port: 1 } }, {});
setFlagsFromString('--expose-gc');
process.on('SIGUSR2', runInNewContext('gc') as () => void);
process.stdout.write(JSON.stringify({ port: fixture.port, token }));
await new Promise((resolve) => process.once('SIGTERM', resolve));
