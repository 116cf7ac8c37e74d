/** The servers of the shared ground, for a whole run of tests. */
import { findProgram } from '../../setup/command.ts';
import { installWithApt } from '../../setup/apt.ts';
import type { Terminal } from '../../setup/terminal.ts';
import type { SharedGround } from './grounds.ts';
import type { ServerUse } from './mongodb-install.ts';
import { testMongo } from './mongodb.ts';
import { openTestRedis, redisProblem } from './redis.ts';

/** Starts a MongoDB and a Redis, or takes those that MONGODB_URL and REDIS_URL name. Returns why not where it cannot. */
export async function openSharedGround(
  terminal: Terminal,
  owned: AsyncDisposableStack,
  use?: ServerUse,
): Promise<SharedGround | { readonly missing: string }> {
  const problem = process.env['REDIS_URL'] ? undefined : await installRedis(terminal);
  if (problem !== undefined) return { missing: problem };
  return await terminal.during('Starting MongoDB and Redis for tests', async () => {
    const mongo = await testMongo(use);
    if ('missing' in mongo) return mongo;
    owned.use(mongo);
    const redis = owned.use(await openTestRedis());
    return { mongodbUrl: mongo.url, redisUrl: redis.url };
  });
}

async function installRedis(terminal: Terminal): Promise<string | undefined> {
  const problem = await redisProblem();
  if (problem === undefined) return undefined;
  if (process.getuid?.() !== 0 || !(await findProgram('apt-get'))) return problem;
  return await installWithApt(terminal, 'Installing Redis', ['redis-server']);
}
