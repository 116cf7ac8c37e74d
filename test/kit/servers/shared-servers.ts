/** Starts the servers of the shared drivers for a run of tests. */
import { findProgram } from '../../../setup/command.ts';
import type { AptPackages } from '../packages/apt-packages.ts';
import type { SharedServers } from './drivers.ts';
import { downloadMongod, mongodProgram } from './mongod.ts';
import { javaPrograms } from './mongodb-install.ts';
import type { ServerUse } from './mongodb-install.ts';
import { testMongo } from './mongodb.ts';
import { openTestRedis, redisProblem } from './redis.ts';

/** Starts MongoDB and Redis, or uses the servers at MONGODB_URL and REDIS_URL. Returns the problem if it cannot. */
export async function openSharedServers(
  packages: AptPackages,
  owned: AsyncDisposableStack,
  use?: ServerUse,
): Promise<SharedServers | { readonly missing: string }> {
  const problem = await installSharedServers(packages);
  if (problem !== undefined) return { missing: problem };
  return await packages.terminal.withProgress('Starting MongoDB and Redis for tests', async () => {
    const mongo = await testMongo(use);
    if ('missing' in mongo) return mongo;
    owned.use(mongo);
    const redis = owned.use(await openTestRedis());
    return { mongodbUrl: mongo.url, redisUrl: redis.url };
  });
}

/** Installs the servers. Returns a problem, or undefined. */
export async function installSharedServers(packages: AptPackages): Promise<string | undefined> {
  const missing: string[] = [];
  const redis = process.env['REDIS_URL'] ? undefined : await redisProblem();
  if (redis !== undefined) missing.push('redis-server');
  if (!(await hasMongo(packages))) missing.push(...(await missingJavaPackages()));
  if (missing.length === 0) return undefined;
  return await packages.install('Installing packages of MongoDB and Redis for tests', missing);
}

/** Whether there is a real MongoDB. Downloads one if packages may be installed. */
async function hasMongo({ policy, terminal }: AptPackages): Promise<boolean> {
  if (process.env['MONGODB_URL'] || (await mongodProgram()) !== undefined) return true;
  if (policy === 'no') return false;
  const problem = await downloadMongod(terminal);
  if (problem === undefined) return true;
  terminal.print(`MongoDB cannot be downloaded, so tests use a server with its protocol: ${problem}`);
  return false;
}

/** The missing packages of the protocol server. */
export async function missingJavaPackages(): Promise<string[]> {
  const missing = new Set<string>();
  for (const [program, name] of Object.entries(javaPrograms)) if (!(await findProgram(program))) missing.add(name);
  return [...missing];
}
