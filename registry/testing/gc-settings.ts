import type { GcSettings } from '../gc/gc-run.ts';

/** As documented in `docs/garbage-collection.md`. */
export const defaultGcSettings: GcSettings = {
  everyMs: 3_600_000,
  leaseMs: 24 * 3_600_000,
  removalWaitMs: 600_000,
  keptUntaggedImages: 20,
};
