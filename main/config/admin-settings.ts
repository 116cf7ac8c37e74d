/** The first administrator of the platform, and what holds for every account. */
import { z } from 'zod';
import { userEmail } from '../../contract/people.ts';
import { optionalText, whole, wordList } from '../../core/config/settings.ts';
import type { Setting } from '../../core/config/settings.ts';

export const adminSettings = {
  adminEmail: {
    variable: 'BERTH_ADMIN_EMAIL',
    schema: optionalText(userEmail),
    defaultText: 'none: the first start writes a set-up code',
    help: 'E-mail address of the first administrator, who is created at the start if there is no such user. Needs `BERTH_ADMIN_PASSWORD_FILE`.',
  },
  adminPasswordFile: {
    variable: 'BERTH_ADMIN_PASSWORD_FILE',
    schema: optionalText(z.string().startsWith('/', 'Use an absolute path')),
    help: 'A file with the password of the first administrator: 12 to 256 characters. It is not read if the user exists.',
  },
  invalidTokensPerMinute: {
    variable: 'BERTH_INVALID_TOKENS_PER_MINUTE',
    schema: whole({ min: 0, max: 1_000_000, or: 300 }),
    help: 'How many invalid tokens the API accepts per minute from one network, before it answers 429. Valid tokens are not limited. 0: no limit.',
  },
  accountConnectsPerSecond: {
    variable: 'BERTH_ACCOUNT_CONNECTS_PER_SECOND',
    schema: whole({ min: 0, max: 1_000_000, or: 0 }),
    defaultText: '`0` (no limit)',
    help: 'How many connects per second an API process accepts from an account for which no other limit is set. 0: no limit.',
  },
  accountRunningBackends: {
    variable: 'BERTH_ACCOUNT_RUNNING_BACKENDS',
    schema: whole({ min: 0, max: 1_000_000, or: 0 }),
    defaultText: '`0` (no limit)',
    help: 'How many backends an account may run at a time if no other limit is set for it. 0: no limit.',
  },
  oidcIssuers: {
    variable: 'BERTH_OIDC_ISSUERS',
    schema: wordList(/^https:\/\/[\w.:/-]+[\w-]$/, 'Use https URLs without a slash at the end, separated by commas'),
    defaultText: '`https://token.actions.githubusercontent.com` (GitHub)',
    help: 'Issuers of ID tokens (OpenID Connect) that trust rules may name. The API fetches their keys.',
  },
  auditDays: {
    variable: 'BERTH_AUDIT_DAYS',
    schema: whole({ min: 1, max: 3650, or: 365 }),
    help: 'How many days the audit keeps its records.',
  },
} satisfies Record<string, Setting<unknown>>;
