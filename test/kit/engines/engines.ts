/** The Docker Engines of a test run. `npm test` starts them, and passes them on in the environment. */
import type { TestEngine } from './docker-engine.ts';

/** The variable with the engines, as JSON. */
export const enginesVariable = 'BERTH_TEST_ENGINES';

/** The engines of this run; most tests use the first. Without `npm test` (with `npx vitest`), the engine at DOCKER_HOST, if set. */
export function testEngines(): readonly TestEngine[] {
  const value = process.env[enginesVariable];
  if (value) return JSON.parse(value) as TestEngine[];
  const host = process.env['DOCKER_HOST'];
  return host ? [{ kind: 'stable', host, version: 'unknown' }] : [];
}
