import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['**/*.test.ts'],
    // Most tests wait for containers and servers: on two cores, two files at a time take little more than half as long.
    maxWorkers: 2,
    // Of tests that say that they may run at a time: those wait for a minute and longer, each for another node.
    maxConcurrency: 7,
    testTimeout: 60_000,
    hookTimeout: 120_000,
  },
});
