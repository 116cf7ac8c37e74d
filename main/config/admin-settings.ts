/** The first administrator of the platform. */
import { z } from 'zod';
import { userEmail } from '../../contract/people.ts';
import { optionalText } from '../../core/config/settings.ts';
import type { Setting } from '../../core/config/settings.ts';

export const adminSettings = {
  adminEmail: {
    variable: 'BERTH_ADMIN_EMAIL',
    schema: optionalText(userEmail),
    defaultText: 'none: the first start prints a set-up code',
    help: 'E-mail address of the first administrator, whom a start creates if there is no such user. Needs `BERTH_ADMIN_PASSWORD_FILE`.',
  },
  adminPasswordFile: {
    variable: 'BERTH_ADMIN_PASSWORD_FILE',
    schema: optionalText(z.string().startsWith('/', 'Use an absolute path')),
    defaultText: 'none',
    help: 'A file with the password of the first administrator: 12 to 256 characters. A start that finds the user does not read it.',
  },
} satisfies Record<string, Setting<unknown>>;
