/** How long data is kept: documents and logs of ended backends, and unused images. */
import { whole } from '../../core/config/settings.ts';
import type { Setting } from '../../core/config/settings.ts';

/** The highest value of most durations in the configuration. */
export const yearSeconds = 365 * 24 * 60 * 60;

export const retentionSettings = {
  backendHistorySeconds: {
    variable: 'BERTH_BACKEND_HISTORY_SECONDS',
    // With less than an hour, a backend could be deleted before its client has read how it ended.
    schema: whole({ min: 3600, max: 10 * yearSeconds, or: 30 * 24 * 3600 }),
    defaultText: '`2592000` (30 days)',
    help: 'How long an ended backend can still be read and listed, with its status history. After that it is deleted, see [retention](retention.md).',
  },
  keptLogBytes: {
    variable: 'BERTH_KEPT_LOG_BYTES',
    schema: whole({ min: 0, max: 64 * 1024 * 1024, or: 1024 * 1024 }),
    help: 'How much of a backend’s log this node keeps after the backend has ended: the last bytes, including a timestamp for each line. 0: nothing.',
  },
  keptLogSeconds: {
    variable: 'BERTH_KEPT_LOG_SECONDS',
    schema: whole({ min: 0, max: yearSeconds, or: 7 * 24 * 3600 }),
    defaultText: '`604800` (7 days)',
    help: 'How long this node keeps the logs of ended backends; at most `BERTH_BACKEND_HISTORY_SECONDS`.',
  },
  keptLogTotalBytes: {
    variable: 'BERTH_KEPT_LOG_TOTAL_BYTES',
    schema: whole({ min: 0, max: Number.MAX_SAFE_INTEGER, or: 4 * 1024 * 1024 * 1024 }),
    help: 'How much disk space this node uses for all these logs. It deletes the oldest first, see [streams](streams.md#logs). 0: no limit.',
  },
  collectEverySeconds: {
    variable: 'BERTH_COLLECT_EVERY_SECONDS',
    schema: whole({ min: 1, max: yearSeconds, or: 3600 }),
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
    help: 'How long the bytes of a blob are kept after the last repository has lost its link to the blob.',
  },
  keptUntaggedImages: {
    variable: 'BERTH_KEPT_UNTAGGED_IMAGES',
    schema: whole({ min: 0, max: 1_000_000, or: 20 }),
    help: 'How many untagged images of each service garbage collection keeps: those pushed last.',
  },
} satisfies Record<string, Setting<unknown>>;

/** How long logs are kept: at most as long as their backends, because clients cannot request the log of a deleted backend. */
export function keptLogSeconds(config: {
  readonly keptLogSeconds: number;
  readonly backendHistorySeconds: number;
}): number {
  return Math.min(config.keptLogSeconds, config.backendHistorySeconds);
}
