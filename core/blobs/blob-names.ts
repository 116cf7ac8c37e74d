import { digestPattern } from '../../contract/names.ts';

/** Uploads may be files named by their IDs, so an ID must be a harmless name. */
const uploadIdPattern = /^[a-zA-Z0-9-]{1,64}$/;

/** Throws a `TypeError` unless this is a digest that the registry takes. Before that it must not become part of a path. */
export function assertDigest(digest: string): void {
  if (!isDigest(digest)) throw new TypeError(`Not a digest: ${JSON.stringify(digest)}`);
}

/** Throws a `TypeError` unless an upload can have this ID. */
export function assertUploadId(uploadId: string): void {
  if (!uploadIdPattern.test(uploadId)) throw new TypeError(`Not the ID of an upload: ${JSON.stringify(uploadId)}`);
}

/** Whether this is a digest that the registry takes. */
export function isDigest(text: string): boolean {
  return digestPattern.test(text);
}
