/** How long closing waits for what is being written and for calls to the engine; what is left, the next worker mends. */
export const closeWithinMs = 5_000;

/** Waits for a promise, but not longer than this. What it rejects with while it is waited for is thrown. */
export async function upTo(ms: number, promise: Promise<unknown>): Promise<void> {
  const limit = Promise.withResolvers<void>();
  const timer = setTimeout(limit.resolve, ms);
  try {
    await Promise.race([promise, limit.promise]);
  } finally {
    clearTimeout(timer);
  }
}
