/** Bundles the action into one file, which is checked in, because runners do not build it. `npm run generate` writes it. */
import { join } from 'node:path';
import { rolldown } from 'rolldown';

/** The text of `action/dist/deploy.mjs`: not minified, so that changes can be reviewed, and without the comments of the sources. */
export async function actionText(): Promise<string> {
  await using bundle = await rolldown({
    input: join(import.meta.dirname, 'deploy.ts'),
    cwd: join(import.meta.dirname, '..'),
    platform: 'node',
    transform: { target: 'node24' },
  });
  const { output } = await bundle.generate({
    format: 'esm',
    codeSplitting: false,
    comments: { legal: true, jsdoc: false },
  });
  return output[0].code;
}
