import { describe, expect, test } from 'vitest';
import { collectLog } from '../../test/kit/collect-log.ts';
import { describeQueue } from '../../test/suites/queue-suite.ts';
import { ManualClock } from '../clock/testing/manual-clock.ts';
import { silentLog } from '../log/log.ts';
import { openInProcessQueue } from './in-process.ts';
import { JobHandlers } from './queue.ts';
import { work } from './testing/parts.ts';

describeQueue('In the process', async () => {
  const clock = new ManualClock();
  const queue = openInProcessQueue({ clock, log: silentLog() });
  return {
    queue,
    advance: async (ms) => await clock.advance(ms),
    [Symbol.asyncDispose]: async () => await queue[Symbol.asyncDispose](),
  };
});

describe('In the process', () => {
  test('pauses longer after each failure, then drops the job and logs that', async () => {
    const clock = new ManualClock();
    const { log, lines } = collectLog();
    await using queue = openInProcessQueue({ clock, log });
    const startMs = clock.now().getTime();
    const triedAtSeconds: number[] = [];
    const handlers = new JobHandlers().on(work, async () => {
      triedAtSeconds.push((clock.now().getTime() - startMs) / 1000);
      throw new Error('Never works');
    });
    await using _ = await queue.consume('tests', handlers, { concurrency: 1 });
    await queue.add('tests', work, { part: 1 }, { id: 'a' });
    await clock.advance(0);
    await clock.advance(600_000);
    expect(triedAtSeconds).toStrictEqual([0, 1, 3, 7, 15, 31, 61, 91]);
    expect(lines.map(({ level }) => level)).toStrictEqual([...Array.from({ length: 7 }, () => 'warn'), 'error']);
    expect(lines.at(-1)).toMatchObject({ msg: 'Job failed permanently', id: 'a', failures: 8, queue: 'tests' });

    await queue.add('tests', work, { part: 1 }, { id: 'a' });
    await clock.advance(0);
    expect(triedAtSeconds).toHaveLength(9);
  });

  test('holds a job once during its pause', async () => {
    const clock = new ManualClock();
    await using queue = openInProcessQueue({ clock, log: silentLog() });
    let tries = 0;
    const handlers = new JobHandlers().on(work, async () => {
      tries += 1;
      if (tries === 1) throw new Error('Not yet');
    });
    await using _ = await queue.consume('tests', handlers, { concurrency: 1 });
    await queue.add('tests', work, { part: 1 }, { id: 'a' });
    await clock.advance(0);
    await queue.add('tests', work, { part: 1 }, { id: 'a' });
    await clock.advance(0);
    expect(tries).toBe(1);
    await clock.advance(600_000);
    expect(tries).toBe(2);
  });

  test('does not lose a job that is added during the last attempt', async () => {
    const clock = new ManualClock();
    await using queue = openInProcessQueue({ clock, log: silentLog() });
    let tries = 0;
    const handlers = new JobHandlers().on(work, async () => {
      tries += 1;
      if (tries === 8) await queue.add('tests', work, { part: 2 }, { id: 'a' });
      if (tries <= 8) throw new Error('Not yet');
    });
    await using _ = await queue.consume('tests', handlers, { concurrency: 1 });
    await queue.add('tests', work, { part: 1 }, { id: 'a' });
    await clock.advance(0);
    await clock.advance(600_000);
    expect(tries).toBe(9);
  });

  test('fails jobs without a handler', async () => {
    const clock = new ManualClock();
    const { log, lines } = collectLog();
    await using queue = openInProcessQueue({ clock, log });
    await using _ = await queue.consume('tests', new JobHandlers(), { concurrency: 1 });
    await queue.add('tests', work, { part: 1 }, { id: 'a' });
    await clock.advance(0);
    expect(JSON.stringify(lines)).toContain('No handler for jobs named \\"work\\"');
  });
});
