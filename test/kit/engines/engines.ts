/** Which Docker Engines there are for stories. `npm test` starts them and says so in the environment. */
import type { TestEngine } from './docker-engine.ts';

/** The variable in which `npm test` hands the engines on, as JSON. */
export const enginesVariable = 'BERTH_TEST_ENGINES';

/** The engines of this run; without `npm test` (`npx vitest`), the one that DOCKER_HOST names, if any. */
export function testEngines(): readonly TestEngine[] {
  const given = process.env[enginesVariable];
  if (given) return JSON.parse(given) as TestEngine[];
  const host = process.env['DOCKER_HOST'];
  return host ? [{ kind: 'stable', host, version: 'unknown' }] : [];
}
