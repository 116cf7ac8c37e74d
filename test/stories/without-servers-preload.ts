/** Loaded into a process of the platform by `--import`: rejects imports that only a platform with MongoDB and Redis needs. */
import { registerHooks } from 'node:module';

const rejected = /\/node_modules\/(?:mongodb|bullmq|ioredis)\//;

registerHooks({
  resolve: (specifier, context, next) => {
    const resolved = next(specifier, context);
    if (rejected.test(resolved.url)) throw new Error(`${specifier} is not for a platform without servers`);
    return resolved;
  },
});
