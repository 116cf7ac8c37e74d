/** The drivers on which tests run a platform. `npm test` starts the servers of the shared drivers, and names them in the environment. */

/** The servers of the shared drivers. */
export interface SharedServers {
  readonly mongodbUrl: string;
  readonly redisUrl: string;
}

/** Embedded: one process, with SQLite and files. Shared: one process per role, with MongoDB, GridFS, BullMQ and Redis. */
export type TestDrivers = 'embedded' | SharedServers;

/** The environment variable in which `npm test` passes on the servers, as JSON. */
export const sharedServersVariable = 'BERTH_TEST_SHARED_SERVERS';

/** The drivers of this test run: always the embedded ones, and the shared ones if their servers run. */
export function testDrivers(): readonly TestDrivers[] {
  const given = process.env[sharedServersVariable];
  return given ? ['embedded', JSON.parse(given) as SharedServers] : ['embedded'];
}
