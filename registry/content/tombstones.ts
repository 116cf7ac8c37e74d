/** The pusher's side of tombstones. */
import type { Clock } from '../../core/clock/clock.ts';
import type { Store } from '../../core/store/store.ts';
import { tombstones } from './documents.ts';
import { RegistryError } from '../errors.ts';

interface Parts {
  readonly store: Store;
  readonly clock: Clock;
  readonly collector: { readonly finishRemovals: () => Promise<unknown> };
  readonly signal: AbortSignal;
}

/** Removing one blob takes milliseconds. What a dead collector left can be taken up when its turn is over: after 15 s. */
const maxWaitMs = 20_000;

const lookEveryMs = 50;

/** How many looks to wait before asking whether the collector is dead. */
const looksBeforeHelp = 20;

/**
 * Makes sure that nobody is going to remove the bytes of a digest which has just been linked: a tombstone that condemns them
 * goes, and a removal that is under way comes to its end. Throws `unavailable` if it does not.
 */
export async function keepBytes({ store, clock, collector, signal }: Parts, digest: string): Promise<void> {
  for (let look = 1; look <= maxWaitMs / lookEveryMs; look += 1) {
    const tombstone = await store.get(tombstones, digest);
    if (!tombstone) return;
    if (tombstone.state === 'condemned') {
      if (await store.delete(tombstones, digest, ({ state }) => state === 'condemned')) return;
    } else {
      await clock.sleep(lookEveryMs, signal);
      if (look % looksBeforeHelp === 0) await collector.finishRemovals();
    }
  }
  throw new RegistryError('unavailable', { headers: { 'retry-after': '5' } });
}
