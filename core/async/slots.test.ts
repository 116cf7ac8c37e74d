import { describe, expect, it } from 'vitest';
import { Slots } from './slots.ts';

const never = new AbortController().signal;

describe('Slots', () => {
  it('lets so many in, and the next one in order when a place is given back', async () => {
    const slots = new Slots(2);
    const first = await slots.take(never);
    expect(slots.free).toBe(1);
    await slots.take(never);
    expect(slots.free).toBe(0);
    expect(slots.tryTake()).toBeUndefined();
    const order: string[] = [];
    const third = slots.take(never).then((slot) => {
      order.push('third');
      return slot;
    });
    const fourth = slots.take(never).then(() => order.push('fourth'));
    first[Symbol.dispose]();
    first[Symbol.dispose]();
    (await third)[Symbol.dispose]();
    await fourth;
    expect(order).toEqual(['third', 'fourth']);
    expect(slots.tryTake()).toBeUndefined();
  });

  it('forgets who does not wait any more', async () => {
    const slots = new Slots(1);
    const first = await slots.take(never);
    const controller = new AbortController();
    const waiting = slots.take(controller.signal);
    controller.abort(new Error('gone'));
    await expect(waiting).rejects.toThrow('gone');
    first[Symbol.dispose]();
    expect(slots.tryTake()).toBeDefined();
  });
});
