import type { Blobs } from '../../core/blobs/blobs.ts';
import type { Clock } from '../../core/clock/clock.ts';
import type { Log } from '../../core/log/log.ts';
import type { Yielder } from '../../core/async/yielder.ts';
import type { Store } from '../../core/store/store.ts';
import type { CollectionSettings } from './settings.ts';

/** What collects garbage, and checks what is stored. */
export interface CollectorDeps {
  readonly store: Store;
  readonly blobs: Blobs;
  readonly clock: Clock;
  readonly log: Log;
  readonly settings: CollectionSettings;
}

/** One collection on its way. */
export interface Collecting extends CollectorDeps {
  /** In the store's time, before anything was read: what was stored since is not looked at. */
  readonly startedAt: Date;
  /** What was last used before this is not leased to anybody. */
  readonly before: Date;
  /** Whether nothing is to be changed. */
  readonly isDry: boolean;
  readonly yielder: Yielder;
  /** Aborts when the collection is to end early. */
  readonly signal: AbortSignal;
}
