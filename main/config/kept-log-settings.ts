/** The settings for kept logs of backends. */
import { whole } from '../../core/config/settings.ts';
import type { Setting } from '../../core/config/settings.ts';
import { yearSeconds } from './gc-settings.ts';

export const keptLogSettings = {
  keptLogBytes: {
    variable: 'BERTH_KEPT_LOG_BYTES',
    schema: whole({ min: 0, max: 64 * 1024 * 1024, or: 1024 * 1024 }),
    defaultText: '`1048576` (1 MiB)',
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
    defaultText: '`4294967296` (4 GiB)',
    help: 'How much disk space this node uses for all these logs. It deletes the oldest first, see [streams](streams.md#logs). 0: no limit.',
  },
} satisfies Record<string, Setting<unknown>>;

/** How long logs are kept: at most as long as their backends, because clients cannot request the log of a deleted backend. */
export function keptLogSeconds(config: {
  readonly keptLogSeconds: number;
  readonly backendHistorySeconds: number;
}): number {
  return Math.min(config.keptLogSeconds, config.backendHistorySeconds);
}
