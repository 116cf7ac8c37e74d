/** Loaded into a process of the platform by `--import`: refuses the code that only a platform with MongoDB and Redis needs. */
import { registerHooks } from 'node:module';

const refused = /\/node_modules\/(?:mongodb|bullmq|ioredis)\//;

registerHooks({
  resolve: (specifier, context, next) => {
    const resolved = next(specifier, context);
    if (refused.test(resolved.url)) throw new Error(`${specifier} is not for a platform without servers`);
    return resolved;
  },
});
