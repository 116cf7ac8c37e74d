// Takes about 30 s
/** Every form of Redis URL, against servers that require exactly that form: the bus and the queue work with it, and other clients are rejected. */
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { startRedisCluster, startSentinelGroup } from '../../test/kit/servers/redis-groups.ts';
import { redisProblem, startRedis, untilReached } from '../../test/kit/servers/redis.ts';
import { silentLog } from '../log/log.ts';
import { openBullQueue } from '../queue/bullmq.ts';
import { JobHandlers } from '../queue/queue.ts';
import type { JobKind } from '../queue/queue.ts';
import type { Topic } from './bus.ts';
import { openRedisBus } from './redis.ts';

const problem = await redisProblem();
const soon = { interval: 10, timeout: 60_000 };
const word: Topic<{ text: string }> = { name: 'word', message: z.strictObject({ text: z.string() }) };
const work: JobKind<{ text: string }> = { name: 'work', payload: z.strictObject({ text: z.string() }) };

type Opened = { readonly url: string } & AsyncDisposable;

const forms: readonly (readonly [name: string, open: () => Promise<Opened>])[] = [
  ['redis://', async () => await startRedis()],
  ['redis://:password@', async () => await startRedis({ password: 's3cret/@' })],
  ['redis://user:password@', async () => await withUser()],
  ['redis://…/3, a database', async () => await inDatabase(3)],
  ['rediss://', async () => await startRedis({ tls: true })],
  ['rediss://:password@', async () => await startRedis({ tls: true, password: 's3cret/@' })],
  ['redis+unix://', async () => await startRedis({ socket: true })],
  ['redis+unix://:password@', async () => await startRedis({ socket: true, password: 's3cret/@' })],
  ['redis+sentinel://:password@', async () => await startSentinelGroup({ password: 's3cret' })],
  [
    'rediss+sentinel://:password@, with another password for the sentinel',
    async () => await startSentinelGroup({ password: 's3cret', sentinelPassword: '0ther', tls: true }),
  ],
  ['redis+cluster://', async () => await startRedisCluster()],
  ['rediss+cluster://:password@', async () => await startRedisCluster({ password: 's3cret', tls: true })],
];

describe.skipIf(problem !== undefined)(`Bus and queue${problem === undefined ? '' : ` (skipped: ${problem})`}`, () => {
  test.each(forms)('work through %s', async (_name, open) => {
    await using redis = await open();
    await using bus = await openRedisBus({ url: redis.url, log: silentLog() });
    await using queue = await openBullQueue({ url: redis.url, log: silentLog() });
    await untilReached(bus);
    await untilReached(queue);
    const heard: string[] = [];
    await bus.subscribe(word, ({ text }) => void heard.push(text));
    const handlers = new JobHandlers().on(work, async ({ text }) => void heard.push(text));
    await using _consumer = await queue.consume('tests', handlers, { concurrency: 1 });
    await bus.publish(word, { text: 'published' });
    await queue.add('tests', work, { text: 'done' }, { id: 'a' });
    await expect.poll(() => [...heard].sort(), soon).toEqual(['done', 'published']);
  });

  const locked = forms.filter(([name]) => name.includes('password'));

  test.each(locked)('%s: rejects a client without the password', async (_name, open) => {
    await using redis = await open();
    const url = redis.url.replace(/\/\/[^@/]*@/, '//');
    await using bus = await openRedisBus({ url, log: silentLog() });
    await using queue = await openBullQueue({ url, log: silentLog() });
    await expect(bus.ping()).rejects.toThrow('Redis');
    await expect(queue.add('tests', work, { text: 'a' }, { id: 'a' })).rejects.toThrow('Redis');
  });
});

/** A server with a user for Berth. */
async function withUser(): Promise<Opened> {
  const redis = await startRedis({ password: 'of-another-user', lines: ['user berth on >s3cret ~* &* +@all'] });
  return at(redis, redis.url.replace(/\/\/[^@]*@/, '//berth:s3cret@'));
}

async function inDatabase(database: number): Promise<Opened> {
  const redis = await startRedis();
  return at(redis, `${redis.url}/${database}`);
}

/** A server under another URL. */
function at(redis: Opened, url: string): Opened {
  return { url, [Symbol.asyncDispose]: () => redis[Symbol.asyncDispose]() };
}
