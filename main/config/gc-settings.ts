/** The settings of garbage collection. */
import { whole } from '../../core/config/settings.ts';
import type { Setting } from '../../core/config/settings.ts';

/** The highest value of most durations in the configuration. */
export const yearSeconds = 365 * 24 * 60 * 60;

export const gcSettings = {
  collectEverySeconds: {
    variable: 'BERTH_COLLECT_EVERY_SECONDS',
    schema: whole({ min: 1, max: yearSeconds, or: 3600 }),
    defaultText: '`3600`',
    help: 'How often the registry collects garbage, see [garbage collection](garbage-collection.md).',
  },
  collectLeaseSeconds: {
    variable: 'BERTH_COLLECT_LEASE_SECONDS',
    schema: whole({ min: 1, max: yearSeconds, or: 24 * 3600 }),
    defaultText: '`86400` (a day)',
    help: 'How long blobs and manifests that nothing refers to are kept after a client last pushed them or the registry last reported them as present. It must be longer than any push takes.',
  },
  collectWaitSeconds: {
    variable: 'BERTH_COLLECT_WAIT_SECONDS',
    schema: whole({ min: 0, max: yearSeconds, or: 600 }),
    defaultText: '`600`',
    help: 'How long the bytes of a blob are kept after the last repository has lost its link to the blob.',
  },
  keptUntaggedImages: {
    variable: 'BERTH_KEPT_UNTAGGED_IMAGES',
    schema: whole({ min: 0, max: 1_000_000, or: 20 }),
    defaultText: '`20`',
    help: 'How many untagged images of each service garbage collection keeps: those pushed last.',
  },
} satisfies Record<string, Setting<unknown>>;
