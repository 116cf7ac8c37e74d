import { describe, expect, it } from 'vitest';
import { Semaphore } from './semaphore.ts';

describe('Semaphore', () => {
  it('grants its permits, and a released one to the next request in order', async () => {
    const semaphore = new Semaphore(2);
    const first = await semaphore.acquire();
    expect(semaphore.available).toBe(1);
    await semaphore.acquire();
    expect(semaphore.available).toBe(0);
    const order: string[] = [];
    const third = semaphore.acquire().then((permit) => {
      order.push('third');
      return permit;
    });
    const fourth = semaphore.acquire().then(() => order.push('fourth'));
    first[Symbol.dispose]();
    first[Symbol.dispose]();
    (await third)[Symbol.dispose]();
    await fourth;
    expect(order).toEqual(['third', 'fourth']);
    expect(semaphore.available).toBe(0);
  });

  it('drops a request whose signal aborts', async () => {
    const semaphore = new Semaphore(1);
    const first = await semaphore.acquire();
    const controller = new AbortController();
    const waiting = semaphore.acquire(controller.signal);
    controller.abort(new Error('gone'));
    await expect(waiting).rejects.toThrow('gone');
    first[Symbol.dispose]();
    expect(semaphore.available).toBe(1);
  });
});
