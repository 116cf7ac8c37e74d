import { availableParallelism } from 'node:os';
import { defineConfig } from 'vitest/config';
import { testEngines } from './test/kit/engines/engines.ts';
import { LongestFirst } from './test/kit/longest-first.ts';
import { filesApart, filesForEveryEngine, filesOf } from './test/kit/projects.ts';

const cores = availableParallelism();
const [, otherEngine] = testEngines();

interface WaitingOptions {
  readonly env?: Record<string, string>;
  readonly isolate?: boolean;
}

/**
 * Tests that wait for containers and servers most of the time: of these more run at a time than there are cores. Files share a worker,
 * because each new one would load a second of CPU time.
 */
function waiting(name: string, include: string[], { env = {}, isolate = false }: WaitingOptions = {}) {
  return {
    extends: true as const,
    test: {
      name,
      include,
      env,
      isolate,
      // V8 otherwise marks the whole heap after every 64 MB of new buffers: an eighth of the CPU time of tests that push images.
      execArgv: ['--external-memory-accounted-in-global-limit'],
      maxWorkers: 2 * cores + 1,
      sequence: { groupOrder: 1 },
      hookTimeout: 240_000,
      testTimeout: 240_000,
      expect: { poll: { timeout: 60_000 } },
    },
  };
}

export default defineConfig({
  test: {
    // On a busy machine, what takes milliseconds alone may take seconds. A test that passes never waits for these times.
    testTimeout: 60_000,
    hookTimeout: 60_000,
    expect: { poll: { timeout: 30_000 } },
    // Of tests that say that they may run at a time: those wait for a minute and longer, each for another node.
    maxConcurrency: 10,
    sequence: { sequencer: LongestFirst },
    projects: [
      {
        extends: true,
        test: {
          name: 'unit',
          include: filesOf('unit'),
          globalSetup: ['test/run/unit-folder.ts'],
          // Some tests wait, for a timer or for a thread.
          maxWorkers: cores + 1,
          isolate: false,
          // Node runs the sources as they stand, and keeps their compiled code, which takes less than a transformation by Vite.
          experimental: { viteModuleRunner: false },
        },
      },
      waiting('drivers', filesOf('drivers')),
      waiting('drivers-apart', filesApart(), { isolate: true }),
      waiting('docker', filesOf('docker')),
      ...(otherEngine
        ? [waiting('docker-other', filesForEveryEngine(), { env: { DOCKER_HOST: otherEngine.host } })]
        : []),
      waiting('e2e', filesOf('e2e')),
    ],
  },
});
