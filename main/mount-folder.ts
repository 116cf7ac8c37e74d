import { join } from 'node:path';
import type { Ground } from './ground.ts';

/** Where the folders are that backends may mount; `undefined` where they may mount none. */
export function mountFolder({ config, dataFolder }: Ground): string | undefined {
  return config.mountFolder === 'off' ? undefined : (config.mountFolder ?? join(dataFolder, 'mounts'));
}
