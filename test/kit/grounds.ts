/** On which grounds stories are told. `npm test` starts the servers of the shared one and says so in the environment. */

/** The servers of the shared ground. */
export interface SharedGround {
  readonly mongodbUrl: string;
  readonly redisUrl: string;
}

/** One process on SQLite, files and itself; or a process a role, on MongoDB, GridFS, BullMQ and Redis. */
export type Ground = 'embedded' | SharedGround;

/** The variable in which `npm test` hands the servers on, as JSON. */
export const sharedGroundVariable = 'BERTH_TEST_SHARED_GROUND';

/** The grounds of this run. */
export function testGrounds(): readonly Ground[] {
  const given = process.env[sharedGroundVariable];
  return given ? ['embedded', JSON.parse(given) as SharedGround] : ['embedded'];
}
