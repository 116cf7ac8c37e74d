import { z } from 'zod';

/** ISO 8601 in UTC with milliseconds, the format of every time in the service API. */
export const timestamp = z.iso
  .datetime({ precision: 3 })
  .meta({ id: 'Timestamp', description: 'ISO 8601 in UTC', examples: ['2026-11-21T09:30:00.000Z'] });
