import { availableParallelism } from 'node:os';
import { defineConfig } from 'vitest/config';
import { LongestFirst } from './test/kit/longest-first.ts';
import { filesOf } from './test/kit/projects.ts';
import type { ProjectName } from './test/kit/projects.ts';

const cores = availableParallelism();

/** Tests that wait for containers and servers most of the time: of these more run at a time than there are cores. */
function waiting(name: ProjectName) {
  return {
    extends: true as const,
    test: {
      name,
      include: filesOf(name),
      maxWorkers: 3 * cores,
      sequence: { groupOrder: 1 },
      testTimeout: 60_000,
      hookTimeout: 120_000,
    },
  };
}

export default defineConfig({
  test: {
    // Of tests that say that they may run at a time: those wait for a minute and longer, each for another node.
    maxConcurrency: 7,
    sequence: { sequencer: LongestFirst },
    projects: [
      {
        extends: true,
        test: { name: 'unit', include: filesOf('unit'), maxWorkers: cores, isolate: false, testTimeout: 60_000 },
      },
      waiting('drivers'),
      waiting('docker'),
      waiting('e2e'),
    ],
  },
});
