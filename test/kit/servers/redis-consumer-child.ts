import { z } from 'zod';
import { silentLog } from '../../../core/log/log.ts';
import { openBullQueue } from '../../../core/queue/bullmq.ts';
import { JobHandlers } from '../../../core/queue/queue.ts';
import type { ConsumerProcessOptions } from './redis-consumer.ts';

const options = JSON.parse(process.argv[2] ?? '') as ConsumerProcessOptions;
const queue = await openBullQueue({ url: options.url, prefix: options.prefix, log: silentLog() });
const work = { name: 'work', payload: z.strictObject({ part: z.int() }) };
const handlers = new JobHandlers().on(work, async ({ part }, signal) => {
  say(`began ${part}`);
  if (options.runsUntilAborted)
    await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }));
  signal.throwIfAborted();
  say(`ended ${part}`);
});
await queue.consume(options.queue, handlers, { concurrency: options.concurrency });
process.once('SIGTERM', () => void queue[Symbol.asyncDispose]().then(() => say('closed')));
say('ready');

function say(line: string): void {
  process.stdout.write(`${line}\n`);
}
