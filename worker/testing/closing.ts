import { expect, vi } from 'vitest';

/** Closes a part of the worker whose work does not end, and expects that this takes five seconds, not longer. */
export async function expectCloseInFiveSeconds(part: AsyncDisposable): Promise<void> {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  try {
    let isClosed = false;
    const closed = (async () => {
      await part[Symbol.asyncDispose]();
      isClosed = true;
    })();
    await vi.advanceTimersByTimeAsync(4_999);
    expect(isClosed).toBe(false);
    await vi.advanceTimersByTimeAsync(1);
    expect(isClosed).toBe(true);
    await closed;
  } finally {
    vi.useRealTimers();
  }
}
