/**
 * What BullMQ cannot do in one step: changing a job that has been added already. BullMQ knows a job by an ID of its own and
 * deduplicates by ours (`de:<id>`); what is added while the job runs it keeps in `dn:<id>`, and adds it when the job ends.
 */
import type { RedisClient } from '../bus/redis-client.ts';

/** Names the keys of a queue, as `Queue.toKey` of BullMQ does. */
export type ToKey = (type: string) => string;

/** BullMQ takes jobs without a priority first, then those with one; in both lines first come, first served. */
export const bullPriority = { high: 0, normal: 1 };

/** What is added under an ID that its queue has already. */
export interface Repeat {
  /** Our ID of the job. */
  readonly id: string;
  /** BullMQ's ID of the job that is in the queue. */
  readonly jobId: string;
  /** The ID that BullMQ would have given to what is added. */
  readonly addedId: string;
  readonly name: string;
  readonly payload: unknown;
  readonly priority: 'high' | 'normal';
}

/**
 * KEYS job, active, next, prioritized, wait, marker, the job that what is added would be. ARGV job ID, ID of what is added, name, data, 1 if its priority is high.
 */
const mergeScript = `
if redis.call('EXISTS', KEYS[7]) == 1 then return 'kept' end
if redis.call('EXISTS', KEYS[1]) == 0 then return 'gone' end
if redis.call('LPOS', KEYS[2], ARGV[1]) then
  return redis.call('HGET', KEYS[3], 'jid') == ARGV[2] and 'kept' or 'gone'
end
redis.call('HSET', KEYS[1], 'name', ARGV[3], 'data', ARGV[4])
redis.call('DEL', KEYS[3])
if ARGV[5] == '1' then
  redis.call('HSET', KEYS[1], 'priority', 0)
  if redis.call('ZREM', KEYS[4], ARGV[1]) == 1 then
    redis.call('LPUSH', KEYS[5], ARGV[1])
    redis.call('ZADD', KEYS[6], 0, '0')
  end
end
return 'kept'
`;

/**
 * Gives a job that waits what was added last. `kept`: it has it, or BullMQ has kept it for when the job ends, or has
 * added it by now. `gone`: the job has ended, or has begun since, and BullMQ did not keep it for sure: add it again.
 */
export async function mergeIntoJob(client: RedisClient, toKey: ToKey, repeat: Repeat): Promise<'kept' | 'gone'> {
  const { id, jobId, addedId, name, payload, priority } = repeat;
  const lines = [toKey('prioritized'), toKey('wait'), toKey('marker')];
  const keys = [toKey(jobId), toKey('active'), toKey(`dn:${id}`), ...lines, toKey(addedId)];
  const isHigh = priority === 'high' ? '1' : '0';
  const answer = await client.eval(
    mergeScript,
    keys.length,
    ...keys,
    jobId,
    addedId,
    name,
    JSON.stringify(payload),
    isHigh,
  );
  return answer === 'kept' ? 'kept' : 'gone';
}

/** KEYS job, next. ARGV 1 if the job is to be first in line. */
const takeNextScript = `
if redis.call('EXISTS', KEYS[1]) == 0 then return 0 end
if ARGV[1] == '1' then redis.call('HSET', KEYS[1], 'priority', 0) end
local next = redis.call('HMGET', KEYS[2], 'name', 'data', 'opts')
if not next[1] then return 0 end
redis.call('HSET', KEYS[1], 'name', next[1], 'data', next[2])
if (cjson.decode(next[3])['priority'] or 0) == 0 then redis.call('HSET', KEYS[1], 'priority', 0) end
redis.call('DEL', KEYS[2])
return 1
`;

/**
 * Gives a job that runs, and will be run again, what was added meanwhile, so that it does not run once more for that.
 *
 * @returns whether something was added.
 */
export async function takeNextIntoJob(
  client: RedisClient,
  toKey: ToKey,
  job: { readonly id: string; readonly jobId: string; readonly isFirstInLine: boolean },
): Promise<boolean> {
  const isFirst = job.isFirstInLine ? '1' : '0';
  return (await client.eval(takeNextScript, 2, toKey(job.jobId), toKey(`dn:${job.id}`), isFirst)) === 1;
}
