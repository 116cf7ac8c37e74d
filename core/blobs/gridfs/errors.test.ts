import { MongoServerError } from 'mongodb';
import { expect, test } from 'vitest';
import { blobErrors } from './errors.ts';

test.each([
  ['OutOfDiskSpace', 14_031, 'no-space'],
  ['FileStreamFailed', 39, 'no-space'],
  ['InterruptedAtShutdown', 11_600, 'unavailable'],
])('%s (%i) of MongoDB counts as %s', async (message, code, expected) => {
  const failing = blobErrors(async () => await Promise.reject(new MongoServerError({ message, code })));
  await expect(failing).rejects.toMatchObject({ name: 'BlobsError', code: expected });
});
