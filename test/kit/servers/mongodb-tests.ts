import { afterAll, describe, expect, test } from 'vitest';
import type { Missing, TestMongo } from './mongodb.ts';

/** Declares tests that need MongoDB. Without it they are skipped, and the report contains the reason. */
export async function describeOnMongo<Mongo extends TestMongo>(
  name: string,
  open: () => Promise<Mongo | Missing>,
  declare: (mongo: Mongo) => void,
): Promise<void> {
  const mongo = await open();
  const declared = isThere(mongo) ? () => declareOn(mongo, declare) : () => skip(mongo);
  describe(`${name} on ${isThere(mongo) ? mongo.kind : 'no MongoDB'}`, () => {
    declared();
  });
}

function isThere<Mongo extends TestMongo>(mongo: Mongo | Missing): mongo is Mongo {
  return !('missing' in mongo);
}

function declareOn<Mongo extends TestMongo>(mongo: Mongo, declare: (mongo: Mongo) => void): void {
  afterAll(async () => await mongo[Symbol.asyncDispose]());
  declare(mongo);
}

function skip({ missing }: Missing): void {
  test.skipIf(missing !== '')(`skipped, as ${missing}`, () => expect(missing).toBe(''));
}
