import { expect, test } from 'vitest';
import { registryErrors } from '../error-catalogue.ts';
import { RegistryError } from '../errors.ts';
import { singleParameter } from './request-target.ts';
import { findRoute } from './routes.ts';

const digest = `sha256:${'a'.repeat(64)}`;
const uploadId = '0f0e0d0c-0000-4000-8000-000000000001';

test.each([
  ['GET', '/v2/', { name: 'ping' }],
  ['GET', '/token?scope=x', { name: 'token-get' }],
  ['GET', `/v2/acme/draw/blobs/${digest}`, { name: 'blob-get', repository: 'acme/draw', digest }],
  ['HEAD', `/v2/acme/draw/blobs/${digest.replace(':', '%3A')}`, { name: 'blob-head' }],
  ['POST', '/v2/acme/draw/blobs/uploads/', { name: 'upload-start', repository: 'acme/draw' }],
  ['POST', '/v2/acme/draw/blobs/uploads?digest=x', { name: 'upload-start', repository: 'acme/draw' }],
  ['PATCH', `/v2/acme/draw/blobs/uploads/${uploadId}`, { name: 'upload-append', uploadId }],
  ['PUT', '/v2/acme/draw/manifests/latest', { name: 'manifest-put', reference: { tag: 'latest' } }],
  ['GET', `/v2/acme/draw/manifests/${digest}`, { name: 'manifest-get', reference: { digest } }],
  ['GET', '/v2/acme/draw/tags/list?n=1', { name: 'tags-list' }],
  ['GET', `/v2/acme/draw/referrers/${digest}`, { name: 'referrers-list', digest }],
  // Repositories may have the names of parts of the path.
  ['GET', '/v2/blobs/uploads/manifests/list', { name: 'manifest-get', repository: 'blobs/uploads' }],
  ['POST', '/v2/tags/blobs/blobs/uploads/', { name: 'upload-start', repository: 'tags/blobs' }],
  ['GET', '/v2/a/manifests/tags/list', { name: 'tags-list', repository: 'a/manifests' }],
])('%s %s', (method, target, operation) => {
  const { route, parameters } = findRoute(method, target);
  expect({ name: route.name, ...parameters }).toMatchObject(operation);
});

test.each([
  ['GET', '/v2/..%2f..%2fetc/blobs/' + digest, 'NAME_INVALID', 400],
  ['GET', '/v2/../../etc/passwd', 'UNSUPPORTED', 404],
  ['GET', '/v2/acme/%2e%2e/manifests/latest', 'NAME_INVALID', 400],
  ['GET', '/v2/acme/draw%00/manifests/latest', 'NAME_INVALID', 400],
  ['GET', '/v2/acme/draw%2fmore/manifests/latest', 'NAME_INVALID', 400],
  ['GET', '/v2/acme//draw/manifests/latest', 'NAME_INVALID', 400],
  ['GET', '/v2//acme/draw/manifests/latest', 'NAME_INVALID', 400],
  ['GET', '/v2/Acme/draw/manifests/latest', 'NAME_INVALID', 400],
  ['GET', `/v2/${'a'.repeat(300)}/draw/manifests/latest`, 'NAME_INVALID', 400],
  ['GET', `/v2/${'a/'.repeat(5_000)}manifests/latest`, 'NAME_INVALID', 400],
  ['GET', '/v2/manifests/latest', 'NAME_INVALID', 400],
  ['GET', '/v2/library/nginx/more/manifests/latest', 'NAME_UNKNOWN', 404],
  ['GET', '/v2/nginx/manifests/latest', 'NAME_UNKNOWN', 404],
  ['PUT', '/v2/nginx/manifests/latest', 'NAME_INVALID', 400],
  ['PUT', '/v2/account/draw/manifests/latest', 'NAME_INVALID', 400],
  ['GET', '/v2/acme/draw/blobs/sha256:../../x', 'UNSUPPORTED', 404],
  ['GET', '/v2/acme/draw/blobs/sha256:..%2f..%2fx', 'DIGEST_INVALID', 400],
  ['GET', `/v2/acme/draw/blobs/${digest.toUpperCase()}`, 'DIGEST_INVALID', 400],
  ['GET', `/v2/acme/draw/blobs/${digest}a`, 'DIGEST_INVALID', 400],
  ['GET', `/v2/acme/draw/blobs/${digest.slice(0, -1)}`, 'DIGEST_INVALID', 400],
  ['GET', `/v2/acme/draw/blobs/md5:${'a'.repeat(32)}`, 'DIGEST_INVALID', 400],
  ['PUT', '/v2/acme/draw/manifests/sha256:baddigeststring', 'DIGEST_INVALID', 400],
  ['GET', '/v2/acme/draw/manifests/-tag', 'MANIFEST_UNKNOWN', 404],
  ['PUT', '/v2/acme/draw/manifests/-tag', 'MANIFEST_INVALID', 400],
  ['PUT', `/v2/acme/draw/manifests/${'t'.repeat(129)}`, 'MANIFEST_INVALID', 400],
  ['PATCH', '/v2/acme/draw/blobs/uploads/..', 'BLOB_UPLOAD_UNKNOWN', 404],
  ['PATCH', '/v2/acme/draw/blobs/uploads/%2e%2e%2fx', 'BLOB_UPLOAD_UNKNOWN', 404],
  ['GET', '/v2/acme/draw/tags/lists', 'UNSUPPORTED', 404],
  ['GET', '/elsewhere', 'UNSUPPORTED', 404],
  ['GET', 'http://evil.example/v2/', 'UNSUPPORTED', 404],
  ['POST', '/v2/', 'UNSUPPORTED', 405],
  ['DELETE', '/v2/acme/draw/tags/list', 'UNSUPPORTED', 405],
  ['constructor', '/v2/', 'UNSUPPORTED', 405],
  ['GET', '/v2/acme/draw/blobs/uploads/', 'UNSUPPORTED', 405],
])('%s %.60s is rejected with %s %i', (method, target, code, status) => {
  const error = errorOf(() => findRoute(method, target));
  expect([registryErrors[error.entry].code, registryErrors[error.entry].status]).toEqual([code, status]);
});

test('the error for an unsupported method lists the supported methods', () => {
  const error = errorOf(() => findRoute('POST', '/v2/acme/draw/manifests/latest'));
  expect(error.headers).toEqual({ allow: 'GET, HEAD, DELETE, PUT' });
});

test('a duplicate parameter is rejected', () => {
  const query = new URLSearchParams('mount=x&mount=y&from[$ne]=1');
  expect(errorOf(() => singleParameter(query, 'mount')).entry).toBe('parameter-invalid');
  expect(singleParameter(query, 'from')).toBeUndefined();
});

function errorOf(action: () => unknown): RegistryError {
  try {
    action();
  } catch (error) {
    if (error instanceof RegistryError) return error;
    throw error;
  }
  throw new Error('Nothing was rejected');
}
