/** When a backend counts as ready. */
import { z } from 'zod';

const httpPath = z
  .string()
  .max(1024)
  .regex(/^\/[!"$-~]*$/, 'Use a path that begins with "/", without spaces and without a fragment')
  .meta({ description: 'Requested with GET; ready when the answer is 200 to 399' });

export const readiness = z
  .discriminatedUnion(
    'type',
    [
      z.strictObject({ type: z.literal('port') }),
      z.strictObject({ type: z.literal('http'), path: httpPath }),
      z.strictObject({ type: z.literal('healthcheck') }),
    ],
    { error: 'Use `port`, `http` with a `path`, or `healthcheck`' },
  )
  .meta({
    id: 'Readiness',
    description:
      'When a backend is ready: `port`, when its port accepts connections; `http`, when a path answers, too; `healthcheck`, when the HEALTHCHECK of its image succeeds, too',
  });

export type Readiness = z.infer<typeof readiness>;
