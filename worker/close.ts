import { settledWithin } from '../core/async/with-timeout.ts';

/** For pending writes and calls to the engine. The next worker completes the rest. */
const closeWithinMs = 5_000;

/** Waits for the last work of a part of the worker that closes, within a time limit. Never rejects. */
export async function settledOnClose(work: Promise<unknown> | undefined): Promise<void> {
  await settledWithin({ ms: closeWithinMs }, async () => await work);
}
