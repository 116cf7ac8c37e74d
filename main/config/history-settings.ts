/** The settings for data about ended backends. */
import { whole } from '../../core/config/settings.ts';
import type { Setting } from '../../core/config/settings.ts';
import { yearSeconds } from './gc-settings.ts';

export const historySettings = {
  backendHistorySeconds: {
    variable: 'BERTH_BACKEND_HISTORY_SECONDS',
    // With less than an hour, a backend could be deleted before its client has read how it ended.
    schema: whole({ min: 3600, max: 10 * yearSeconds, or: 30 * 24 * 3600 }),
    defaultText: '`2592000` (30 days)',
    help: 'How long an ended backend can still be read and listed, with its status history. After that it is deleted, see [retention](retention.md).',
  },
} satisfies Record<string, Setting<unknown>>;
