/** "Error Codes": errors have the form and the codes of the specification. */
import { expect, test } from 'vitest';
import { registryErrors } from '../../registry/error-catalogue.ts';
import { sha256 } from '../kit/registry/registry.ts';
import { json, onAllRegistries } from './fixture.ts';

/** The table of the specification. */
const codes = [
  'BLOB_UNKNOWN',
  'BLOB_UPLOAD_INVALID',
  'BLOB_UPLOAD_UNKNOWN',
  'DIGEST_INVALID',
  'MANIFEST_BLOB_UNKNOWN',
  'MANIFEST_INVALID',
  'MANIFEST_UNKNOWN',
  'NAME_INVALID',
  'NAME_UNKNOWN',
  'SIZE_INVALID',
  'UNAUTHORIZED',
  'DENIED',
  'UNSUPPORTED',
  'TOOMANYREQUESTS',
];

test('every client error in the catalogue has a code of the table', () => {
  const clientErrors = Object.values(registryErrors).filter(({ status }) => status < 500);
  expect(clientErrors.map(({ code }) => code).filter((code) => !codes.includes(code))).toEqual([]);
});

onAllRegistries((fixture) => {
  test.each([
    ['GET', `blobs/${sha256('x')}`, 404, 'BLOB_UNKNOWN'],
    ['GET', 'blobs/sha256:x', 400, 'DIGEST_INVALID'],
    ['POST', 'blobs/uploads/?digest=x', 400, 'DIGEST_INVALID'],
    ['POST', 'blobs/uploads/?mount=x', 400, 'DIGEST_INVALID'],
    ['GET', 'blobs/uploads/none', 404, 'BLOB_UPLOAD_UNKNOWN'],
    ['PUT', 'manifests/v1', 400, 'MANIFEST_INVALID'],
    ['DELETE', 'manifests/v1', 404, 'NAME_UNKNOWN'],
    ['GET', 'tags/list?n=x', 400, 'UNSUPPORTED'],
    ['GET', 'tags/none', 404, 'UNSUPPORTED'],
    ['POST', 'tags/list', 405, 'UNSUPPORTED'],
    ['PATCH', 'manifests/v1', 405, 'UNSUPPORTED'],
    ['GET', 'blobs/uploads/', 405, 'UNSUPPORTED'],
  ])('%s %s: %i %s', async (method, path, status, code) => {
    const answer = await fixture.repository().send(path, { method });
    expect([answer.status, answer.headers['content-type']]).toEqual([status, 'application/json']);
    expect(answer.headers['content-length']).toBe(String(answer.body.length));
    const { errors, ...more } = json(answer) as { errors: object[] };
    expect([errors.length, more]).toEqual([1, {}]);
    expect(errors[0]).toEqual({ code, message: expect.any(String) });
    expect(code).toMatch(/^[A-Z_]+$/);
    if (status === 405) expect(answer.headers.allow).toMatch(/^[A-Z]+(?:, [A-Z]+)*$/);
  });
});
