/** The variables of garbage collection, a part of the configuration. */
import { whole } from '../../core/config/settings.ts';
import type { Setting } from '../../core/config/settings.ts';

/** Nothing is configured to take longer. */
export const yearSeconds = 365 * 24 * 60 * 60;

export const gcSettings = {
  collectEverySeconds: {
    variable: 'BERTH_COLLECT_EVERY_SECONDS',
    schema: whole({ min: 1, max: yearSeconds, or: 3600 }),
    defaultText: '`3600`',
    help: 'How often the registry collects garbage, see [collection](collection.md).',
  },
  collectLeaseSeconds: {
    variable: 'BERTH_COLLECT_LEASE_SECONDS',
    schema: whole({ min: 1, max: yearSeconds, or: 24 * 3600 }),
    defaultText: '`86400` (a day)',
    help: 'How long blobs and manifests that nothing refers to stay, after a client last pushed them or was told that they are here. It must be longer than any push takes.',
  },
  collectWaitSeconds: {
    variable: 'BERTH_COLLECT_WAIT_SECONDS',
    schema: whole({ min: 0, max: yearSeconds, or: 600 }),
    defaultText: '`600`',
    help: 'How long the bytes of a blob stay after no repository has it any more.',
  },
  keptUntaggedImages: {
    variable: 'BERTH_KEPT_UNTAGGED_IMAGES',
    schema: whole({ min: 0, max: 1_000_000, or: 20 }),
    defaultText: '`20`',
    help: 'How many untagged images of each service garbage collection keeps: the last ones pushed.',
  },
} satisfies Record<string, Setting<unknown>>;
