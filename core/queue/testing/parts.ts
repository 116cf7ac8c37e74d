/** Jobs for tests that check which jobs run. Each job is identified by its part, a number. */
import { setTimeout as delay } from 'node:timers/promises';
import { z } from 'zod';
import { JobHandlers, QueueError } from '../queue.ts';
import type { JobKind, Queue } from '../queue.ts';

export const work: JobKind<{ part: number }> = { name: 'work', payload: z.strictObject({ part: z.int() }) };

/** Polling of conditions that Redis or another process must reach. A test that passes does not wait this long. */
export const soon = { interval: 20, timeout: 60_000 };

/** The parts whose jobs have begun, and the handlers that run the jobs. */
export function partsOf(onPart: (part: number) => Promise<void>) {
  const parts = new Set<number>();
  const handlers = new JobHandlers().on(work, async ({ part }) => {
    parts.add(part);
    await onPart(part);
  });
  return { parts, handlers };
}

/** Adds `count` jobs one after another, and more until `isEnough`. Returns the parts that the queue has added. */
export async function addMany(queue: Queue, count: number, isEnough = () => true): Promise<number[]> {
  const added: number[] = [];
  for (let part = 0; part < count || !isEnough(); part += 1) {
    if (await isAdded(queue, part)) added.push(part);
    // Otherwise, a queue that rejects at once would be called without a pause.
    else await delay(5);
  }
  return added;
}

/** Whether the queue has added a job: `false` while Redis is unavailable. */
export async function isAdded(queue: Queue, part: number): Promise<boolean> {
  try {
    await queue.add('tests', work, { part }, { id: `${part}` });
    return true;
  } catch (error) {
    if (isUnavailable(error)) return false;
    throw error;
  }
}

export function isUnavailable(error: unknown): boolean {
  return error instanceof QueueError && error.code === 'unavailable';
}
