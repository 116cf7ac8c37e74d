import type { CollectionSettings } from '../gc/settings.ts';

/** As documented in `docs/collection.md`. */
export const defaultCollectionSettings: CollectionSettings = {
  everyMs: 3_600_000,
  leaseMs: 24 * 3_600_000,
  removalWaitMs: 600_000,
  keptUntaggedImages: 20,
};
