/** The suite that every queue driver passes. */
import { describe, expect, test } from 'vitest';
import type { TestAPI } from 'vitest';
import { z } from 'zod';
import { JobHandlers } from '../../core/queue/queue.ts';
import type { JobHandler, JobKind, Queue } from '../../core/queue/queue.ts';

/** A queue whose time a test can advance. */
export interface QueueUnderTest extends AsyncDisposable {
  readonly queue: Queue;
  /** Advances the queue's clock, or waits. */
  readonly advance: (ms: number) => Promise<void>;
}

const greet: JobKind<{ name: string }> = { name: 'greet', payload: z.strictObject({ name: z.string() }) };
const count: JobKind<{ to: number }> = { name: 'count', payload: z.strictObject({ to: z.int() }) };

/** Longer than the pause after a first failure. */
const afterFirstPauseMs = 2_000;

const soon = { interval: 5, timeout: 50_000 };

/** Declares the tests of a driver; `create` creates a new, empty queue. */
export function describeQueue(name: string, create: () => Promise<QueueUnderTest>): void {
  const queueTest = test.extend<{ fixture: QueueUnderTest }>({
    // oxlint-disable-next-line no-empty-pattern -- Vitest reads the needed fixtures from the pattern
    fixture: async ({}, use) => {
      await using fixture = await create();
      await use(fixture);
    },
  });
  describe(`${name}: jobs`, () => {
    describeJobs(queueTest);
  });
  describe(`${name}: failures`, () => {
    describeFailures(queueTest);
  });
  describe(`${name}: closing`, () => {
    describeClosing(queueTest);
  });
}

type QueueTest = TestAPI<{ fixture: QueueUnderTest }>;

function describeJobs(queueTest: QueueTest): void {
  queueTest('passes each job to the handler of its kind, once', async ({ fixture: { queue } }) => {
    await queue.ping();
    const done: string[] = [];
    const handlers = new JobHandlers()
      .on(greet, async ({ name }) => void done.push(`hello ${name}`))
      .on(count, async ({ to }) => void done.push(`counted to ${to}`));
    await queue.add('tests', greet, { name: 'Ada' }, { id: 'a' });
    await using _ = await queue.consume('tests', handlers, { concurrency: 1 });
    await queue.add('tests', count, { to: 3 }, { id: 'b' });
    await expect.poll(() => done, soon).toStrictEqual(['hello Ada', 'counted to 3']);
  });

  queueTest('keeps queues separate', async ({ fixture: { queue } }) => {
    const [here, there] = [new Gate(), new Gate()];
    await using _ = await queue.consume('here', here.handlers, { concurrency: 1 });
    await using __ = await queue.consume('there', there.handlers, { concurrency: 1 });
    await queue.add('here', greet, { name: '1' }, { id: 'same' });
    await queue.add('there', greet, { name: '2' }, { id: 'same' });
    await expect.poll(() => [here.begun, there.begun], soon).toStrictEqual([['1'], ['2']]);
    here.open();
    there.open();
  });

  queueTest('keeps one of several waiting jobs with the same ID', async ({ fixture: { queue } }) => {
    const gate = new Gate();
    for (const name of ['a', 'b', 'a', 'a', 'c']) await queue.add('tests', greet, { name }, { id: name });
    gate.open();
    await using _ = await queue.consume('tests', gate.handlers, { concurrency: 1 });
    await expect.poll(() => gate.begun, soon).toStrictEqual(['a', 'b', 'c']);
  });

  queueTest('accepts digests and slashes in the ID of a job', async ({ fixture: { queue } }) => {
    const gate = new Gate();
    const [one, other] = ['prefetch-acme/draw@sha256:1', 'prefetch-acme/draw@sha256:2'];
    for (const name of [one, other, one]) await queue.add('tests', greet, { name }, { id: name });
    gate.open();
    await using _ = await queue.consume('tests', gate.handlers, { concurrency: 1 });
    await expect.poll(() => gate.begun, soon).toStrictEqual([one, other]);
  });

  queueTest('runs a job once more when it was added again while it ran', async ({ fixture: { queue } }) => {
    const gate = new Gate();
    await using _ = await queue.consume('tests', gate.handlers, { concurrency: 3 });
    await queue.add('tests', greet, { name: 'first' }, { id: 'a' });
    await expect.poll(() => gate.begun, soon).toStrictEqual(['first']);
    await queue.add('tests', greet, { name: 'second' }, { id: 'a' });
    await queue.add('tests', greet, { name: 'third' }, { id: 'a' });
    await queue.add('tests', greet, { name: 'other' }, { id: 'b' });
    await expect.poll(() => gate.begun, soon).toStrictEqual(['first', 'other']);
    gate.open();
    await expect.poll(() => gate.ended, soon).toStrictEqual(['first', 'other', 'third']);
    await queue.add('tests', greet, { name: 'fourth' }, { id: 'a' });
    await expect.poll(() => gate.ended, soon).toStrictEqual(['first', 'other', 'third', 'fourth']);
  });

  queueTest('runs jobs of high priority before other waiting jobs', async ({ fixture: { queue } }) => {
    const gate = new Gate();
    gate.open();
    await queue.add('tests', greet, { name: 'n1' }, { id: 'n1' });
    await queue.add('tests', greet, { name: 'n2' }, { id: 'n2', priority: 'normal' });
    await queue.add('tests', greet, { name: 'h1' }, { id: 'h1', priority: 'high' });
    await queue.add('tests', greet, { name: 'h2' }, { id: 'h2', priority: 'high' });
    await using _ = await queue.consume('tests', gate.handlers, { concurrency: 1 });
    await expect.poll(() => gate.begun, soon).toStrictEqual(['h1', 'h2', 'n1', 'n2']);
  });

  queueTest('runs no more jobs at once than the concurrency of a consumer', async ({ fixture: { queue } }) => {
    const [narrow, wide] = [new Gate(), new Gate()];
    for (let i = 0; i < 10; i += 1) await queue.add('tests', greet, { name: `${i}` }, { id: `${i}` });
    await using _ = await queue.consume('tests', narrow.handlers, { concurrency: 1 });
    await using __ = await queue.consume('tests', wide.handlers, { concurrency: 3 });
    await expect.poll(() => [narrow.begun.length, wide.begun.length], soon).toStrictEqual([1, 3]);
    narrow.open();
    wide.open();
    await expect.poll(() => narrow.ended.length + wide.ended.length, soon).toBe(10);
    expect(Math.max(narrow.maxRunning, wide.maxRunning)).toBe(3);
    expect(narrow.maxRunning).toBe(1);
  });

  queueTest('rejects a payload that does not match its kind', async ({ fixture: { queue } }) => {
    await expect(queue.add('tests', count, { to: 1.5 }, { id: 'a' })).rejects.toThrow(z.ZodError);
  });

  queueTest('does not run a handler within add', async ({ fixture: { queue } }) => {
    const gate = new Gate();
    await using _ = await queue.consume('tests', gate.handlers, { concurrency: 1 });
    const adding = queue.add('tests', greet, { name: 'a' }, { id: 'a' });
    expect(gate.begun).toStrictEqual([]);
    await adding;
    await expect.poll(() => gate.begun, soon).toStrictEqual(['a']);
    gate.open();
  });
}

function describeFailures(queueTest: QueueTest): void {
  queueTest(
    'retries a failed job after a pause, and runs other jobs meanwhile',
    async ({ fixture: { queue, advance } }) => {
      const runs: string[] = [];
      const handlers = new JobHandlers().on(greet, async ({ name }) => {
        runs.push(name);
        if (name === 'bad' && runs.filter((run) => run === 'bad').length === 1) throw new Error('Not yet');
      });
      await using _ = await queue.consume('tests', handlers, { concurrency: 1 });
      await queue.add('tests', greet, { name: 'bad' }, { id: 'bad' });
      await queue.add('tests', greet, { name: 'good' }, { id: 'good' });
      await expect.poll(() => runs.slice(0, 2), soon).toStrictEqual(['bad', 'good']);
      await advance(afterFirstPauseMs);
      await expect.poll(() => runs, soon).toStrictEqual(['bad', 'good', 'bad']);
      await queue.add('tests', greet, { name: 'bad' }, { id: 'bad' });
      await expect.poll(() => runs, soon).toStrictEqual(['bad', 'good', 'bad', 'bad']);
    },
  );
}

function describeClosing(queueTest: QueueTest): void {
  queueTest('aborts the jobs of a consumer that is disposed, and waits for them', async ({ fixture: { queue } }) => {
    const events: string[] = [];
    const begun = Promise.withResolvers<void>();
    const slow: JobHandler<{ name: string }> = async (_, signal) => {
      begun.resolve();
      await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }));
      events.push('aborted');
      await new Promise((resolve) => setImmediate(resolve));
      events.push('ended');
    };
    const consumer = await queue.consume('tests', new JobHandlers().on(greet, slow), { concurrency: 1 });
    await queue.add('tests', greet, { name: 'a' }, { id: 'a' });
    await begun.promise;
    await queue.add('tests', greet, { name: 'b' }, { id: 'b' });
    await consumer[Symbol.asyncDispose]();
    await consumer[Symbol.asyncDispose]();
    expect(events).toStrictEqual(['aborted', 'ended']);

    const gate = new Gate();
    gate.open();
    await using _ = await queue.consume('tests', gate.handlers, { concurrency: 1 });
    await expect.poll(() => gate.begun, soon).toStrictEqual(['b']);
  });

  queueTest('passes an interrupted job to the next consumer', async ({ fixture: { queue } }) => {
    const begun = Promise.withResolvers<void>();
    const interrupted: JobHandler<{ name: string }> = async (_, signal) => {
      begun.resolve();
      await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }));
      signal.throwIfAborted();
    };
    const consumer = await queue.consume('tests', new JobHandlers().on(greet, interrupted), { concurrency: 1 });
    await queue.add('tests', greet, { name: 'a' }, { id: 'a' });
    await begun.promise;
    await consumer[Symbol.asyncDispose]();
    const gate = new Gate();
    gate.open();
    await using _ = await queue.consume('tests', gate.handlers, { concurrency: 1 });
    await expect.poll(() => gate.ended, soon).toStrictEqual(['a']);
  });

  queueTest('ends its consumers when it is closed, and rejects later calls', async ({ fixture: { queue } }) => {
    const begun = Promise.withResolvers<void>();
    let ended = false;
    const slow: JobHandler<{ name: string }> = async (_, signal) => {
      begun.resolve();
      await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }));
      ended = true;
    };
    await queue.consume('tests', new JobHandlers().on(greet, slow), { concurrency: 1 });
    await queue.add('tests', greet, { name: 'a' }, { id: 'a' });
    await begun.promise;
    await queue[Symbol.asyncDispose]();
    await queue[Symbol.asyncDispose]();
    expect(ended).toBe(true);
    await expect(queue.ping()).rejects.toThrow('The queue is closed');
    await expect(queue.add('tests', greet, { name: 'b' }, { id: 'b' })).rejects.toThrow('The queue is closed');
    await expect(queue.consume('tests', new JobHandlers(), { concurrency: 1 })).rejects.toThrow('The queue is closed');
  });
}

/** Handlers whose jobs wait until the gate is open. */
class Gate {
  readonly begun: string[] = [];
  readonly ended: string[] = [];
  /** The largest number of jobs that ran at once. */
  maxRunning = 0;
  readonly #opened = Promise.withResolvers<void>();
  #running = 0;

  readonly handlers = new JobHandlers().on(greet, async ({ name }) => {
    this.begun.push(name);
    this.#running += 1;
    this.maxRunning = Math.max(this.maxRunning, this.#running);
    await this.#opened.promise;
    this.#running -= 1;
    this.ended.push(name);
  });

  open(): void {
    this.#opened.resolve();
  }
}
