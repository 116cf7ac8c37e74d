/**
 * The drivers on which tests run a platform. `npm test` starts the servers of the shared ones, and passes them on in the
 * environment.
 */

/** The servers of the shared drivers. */
export interface SharedServers {
  readonly mongodbUrl: string;
  readonly redisUrl: string;
}

/** `embedded`: one process, with SQLite and files. Shared: one process per role, with MongoDB, GridFS, BullMQ and Redis. */
export type TestDrivers = 'embedded' | SharedServers;

/** The variable with the servers, as JSON. */
export const sharedServersVariable = 'BERTH_TEST_SHARED_SERVERS';

/** The drivers of this run: the embedded ones, and the shared ones if their servers run. */
export function testDrivers(): readonly TestDrivers[] {
  const value = process.env[sharedServersVariable];
  return value ? ['embedded', JSON.parse(value) as SharedServers] : ['embedded'];
}
