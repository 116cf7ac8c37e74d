/**
 * From a method and a raw request target to an operation. The path is never percent-decoded: everything legal in it is
 * plain ASCII, so an escape is a trick (`%2e%2e`, `%2f`, `%00`) and fails the grammar of names. The one exception is the
 * colon of a digest, which careful clients escape.
 */
import { accountName, digestPattern, serviceName, tagPattern } from '../contract/names.ts';
import { RegistryError } from './errors.ts';

/** What a manifest is asked for by. */
export type Reference = { readonly tag: string } | { readonly digest: string };

export type Operation = { readonly name: 'token-get' } | { readonly name: 'token-post' } | GrantedOperation;

/** An operation for which the caller must have a right. */
export type GrantedOperation =
  | { readonly name: 'ping' }
  | { readonly name: 'catalog' }
  | (InRepository & { readonly name: 'blob-get' | 'blob-head' | 'blob-delete'; readonly digest: string })
  | (InRepository & { readonly name: 'upload-start' })
  | (InRepository & {
      readonly name: 'upload-append' | 'upload-finish' | 'upload-status' | 'upload-cancel';
      readonly uploadId: string;
    })
  | (InRepository & {
      readonly name: 'manifest-get' | 'manifest-head' | 'manifest-put' | 'manifest-delete';
      readonly reference: Reference;
    })
  | (InRepository & { readonly name: 'tags-list' })
  | (InRepository & { readonly name: 'referrers-list'; readonly digest: string });

interface InRepository {
  /** `<account>/<service>`. */
  readonly repository: string;
}

export interface Route {
  readonly operation: Operation;
  readonly query: URLSearchParams;
}

/** OCI distribution-spec, "Pulling manifests": the grammar of repository names in general. */
const namePattern = /^[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*(?:\/[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*)*$/;

/** Clients cap host and name together at 255. */
const maxNameLength = 255;

const uploadIdPattern = /^[a-f0-9]{8}(?:-[a-f0-9]{4}){3}-[a-f0-9]{12}$/;

/** Throws `RegistryError` where nothing legal is asked for. */
export function parseRoute(method: string, target: string): Route {
  const queryAt = target.indexOf('?');
  const path = queryAt < 0 ? target : target.slice(0, queryAt);
  const query = new URLSearchParams(queryAt < 0 ? '' : target.slice(queryAt + 1));
  return { operation: parsePath(method, path), query };
}

/** The one value of a parameter. Throws `parameter-invalid` if it is repeated. */
export function singleParameter(query: URLSearchParams, name: string): string | undefined {
  const values = query.getAll(name);
  if (values.length > 1) throw new RegistryError('parameter-invalid', { detail: `${name} stands more than once` });
  return values[0];
}

/** Whether a repository of this name can be: `<account>/<service>`, both legal. */
export function isRepositoryName(name: string): boolean {
  const [account, service, ...more] = name.split('/');
  return accountName.safeParse(account).success && serviceName.safeParse(service).success && more.length === 0;
}

function parsePath(method: string, path: string): Operation {
  if (path === '/v2' || path === '/v2/') return byMethod(method, { GET: { name: 'ping' }, HEAD: { name: 'ping' } });
  if (path === '/token') return byMethod(method, { GET: { name: 'token-get' }, POST: { name: 'token-post' } });
  if (path === '/v2/_catalog') return byMethod(method, { GET: { name: 'catalog' } });
  if (!path.startsWith('/v2/')) throw new RegistryError('not-found');
  const segments = path.slice('/v2/'.length).split('/');
  const last = (segments.pop() ?? '').replace(/%3a/i, ':');
  const kind = segments.pop() ?? '';
  if (kind === 'uploads' && segments.at(-1) === 'blobs') {
    return uploadOperation(method, { name: segments.slice(0, -1).join('/'), uploadId: last });
  }
  const name = segments.join('/');
  switch (kind) {
    case 'blobs':
      // `POST …/blobs/uploads` without the slash at its end is what some clients send.
      return last === 'uploads'
        ? uploadOperation(method, { name, uploadId: '' })
        : blobOperation(method, { name, digest: last });
    case 'manifests':
      return manifestOperation(method, { name, reference: last });
    case 'tags':
      if (last !== 'list') throw new RegistryError('not-found');
      return byMethod(method, { GET: { name: 'tags-list', repository: toRead(name) } });
    case 'referrers':
      return byMethod(method, {
        GET: { name: 'referrers-list', repository: toRead(name), digest: digestOf(last) },
      });
    default:
      throw new RegistryError('not-found');
  }
}

function uploadOperation(method: string, { name, uploadId }: { name: string; uploadId: string }): Operation {
  const repository = toWrite(name);
  if (uploadId === '') return byMethod(method, { POST: { name: 'upload-start', repository } });
  if (!uploadIdPattern.test(uploadId)) throw new RegistryError('upload-unknown');
  return byMethod(method, {
    PATCH: { name: 'upload-append', repository, uploadId },
    PUT: { name: 'upload-finish', repository, uploadId },
    GET: { name: 'upload-status', repository, uploadId },
    DELETE: { name: 'upload-cancel', repository, uploadId },
  });
}

function blobOperation(method: string, target: { name: string; digest: string }): Operation {
  const repository = toRead(target.name);
  const digest = digestOf(target.digest);
  return byMethod(method, {
    GET: { name: 'blob-get', repository, digest },
    HEAD: { name: 'blob-head', repository, digest },
    DELETE: { name: 'blob-delete', repository, digest },
  });
}

function manifestOperation(method: string, target: { name: string; reference: string }): Operation {
  if (method === 'PUT') {
    const repository = toWrite(target.name);
    const reference = referenceOf(target.reference);
    if (!reference) throw new RegistryError('tag-invalid');
    return { name: 'manifest-put', repository, reference };
  }
  const repository = toRead(target.name);
  const reference = referenceOf(target.reference);
  if (!reference) throw new RegistryError('manifest-unknown');
  return byMethod(method, {
    GET: { name: 'manifest-get', repository, reference },
    HEAD: { name: 'manifest-head', repository, reference },
    DELETE: { name: 'manifest-delete', repository, reference },
    PUT: undefined,
  });
}

function byMethod(method: string, operations: Record<string, Operation | undefined>): Operation {
  const operation = Object.hasOwn(operations, method) ? operations[method] : undefined;
  if (operation) return operation;
  throw new RegistryError('method-not-allowed', { headers: { allow: Object.keys(operations).join(', ') } });
}

/** A name that nothing can have been pushed to is unknown, not wrong: clients ask for `library/…` and the like. */
function toRead(name: string): string {
  if (isRepositoryName(name)) return name;
  throw new RegistryError(name.length <= maxNameLength && namePattern.test(name) ? 'name-unknown' : 'name-invalid');
}

function toWrite(name: string): string {
  if (isRepositoryName(name)) return name;
  throw new RegistryError('name-invalid');
}

function digestOf(text: string): string {
  if (digestPattern.test(text)) return text;
  throw new RegistryError('digest-invalid');
}

function referenceOf(text: string): Reference | undefined {
  if (text.includes(':')) return { digest: digestOf(text) };
  return tagPattern.test(text) ? { tag: text } : undefined;
}
