/** The variables of what is kept of backends that have ended, a part of the configuration. */
import { whole } from '../../core/config/settings.ts';
import type { Setting } from '../../core/config/settings.ts';
import { yearSeconds } from './gc-settings.ts';

export const historySettings = {
  backendHistorySeconds: {
    variable: 'BERTH_BACKEND_HISTORY_SECONDS',
    // Under an hour a client could lose a backend whose end it has not read yet.
    schema: whole({ min: 3600, max: 10 * yearSeconds, or: 30 * 24 * 3600 }),
    defaultText: '`2592000` (30 days)',
    help: 'How long a backend that has ended can still be looked up and listed, with its status history. Then it is deleted, see [retention](retention.md).',
  },
} satisfies Record<string, Setting<unknown>>;
