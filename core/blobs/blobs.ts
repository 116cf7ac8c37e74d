/**
 * The port to bytes by digest. A blob is whole or absent: it becomes visible under its digest in one step, after its bytes
 * are durable. What is still being received is an upload, named by an ID of the caller's choice; it survives restarts.
 *
 * Drivers hash what they write, beside the writing, and publish an upload under no digest but its own. What is no digest of
 * `contract/`, or no upload ID (1 to 64 letters, digits and hyphens), is refused with a `TypeError`.
 */
import type { Readable, Writable } from 'node:stream';
import { digestPattern } from '../../contract/names.ts';
import type { HashAlgorithm } from '../hash/hash.ts';

export interface BlobInfo {
  readonly sizeBytes: number;
  /** Another one each time the digest is published after having been deleted, replaced or renewed. */
  readonly generation: string;
}

/** Bytes `start` to `end`, both included, counted from 0. */
export interface ByteRange {
  readonly start: number;
  readonly end: number;
}

export interface UploadInfo {
  readonly sizeBytes: number;
  /** When bytes were last added. */
  readonly touchedAt: Date;
}

/** A blob that can be read to its end, also when it is deleted meanwhile. */
export interface OpenBlob extends AsyncDisposable {
  readonly sizeBytes: number;

  /**
   * Writes its bytes, or some of them, to a stream, which stays open; resolves when the stream has handed them on. The
   * stream must not keep the chunks it is given: their memory is used again. Rejects when the stream is destroyed.
   */
  copyTo(to: Writable, range?: ByteRange): Promise<void>;
}

/** What an upload has so far. */
export interface UploadDigest {
  readonly sizeBytes: number;
  readonly digest: string;
}

/**
 * Bytes as they come: each time the chunks that are there. A step of asynchronous iteration costs as much as it does to hash
 * some kilobytes, so several chunks share one.
 */
export type ByteSource = AsyncIterable<readonly Uint8Array[]>;

export interface AppendOptions {
  readonly signal?: AbortSignal;
  /** Of the digest under which the upload will probably be published: it is hashed so beside the writing. Default: sha256. */
  readonly algorithm?: HashAlgorithm;
}

export interface Blobs extends AsyncDisposable {
  /** Throws `BlobsError` when blobs cannot be stored or read. */
  ping(): Promise<void>;

  stat(digest: string): Promise<BlobInfo | undefined>;

  /** Opens a blob for the quickest way out; dispose it. `undefined` if absent. */
  open(digest: string): Promise<OpenBlob | undefined>;

  /** The bytes of a blob, read as they are consumed; destroying the stream frees what it holds. `undefined` if absent. */
  read(digest: string, range?: ByteRange): Promise<Readable | undefined>;

  /**
   * Deletes a blob; if a generation is named, only while the blob is of that one.
   *
   * @returns whether there was such a blob. Streams that are already open read on to their end.
   */
  delete(digest: string, generation?: string): Promise<boolean>;

  /**
   * Gives a blob another generation: whoever was about to delete the one before, and wakes up when it is too late, deletes
   * nothing. Does nothing if the blob is absent.
   */
  renew(digest: string): Promise<void>;

  /** Digests of all blobs, in no particular order. */
  list(): AsyncIterable<string>;

  /** Begins an upload of no bytes. Throws `BlobsError` with code `upload-exists` if the ID is in use. */
  createUpload(uploadId: string): Promise<void>;

  /** `undefined` if there is no such upload. */
  statUpload(uploadId: string): Promise<UploadInfo | undefined>;

  /**
   * Adds bytes at `offset`, which must be the upload's size (otherwise code `wrong-offset`). Bytes that arrived before
   * `source` failed or `signal` aborted are kept and counted. Two appends to one upload at a time, or an append and its
   * publication: the later one fails with code `upload-busy`. An upload may be deleted meanwhile: `upload-unknown`. The chunks
   * belong to the append: memory that holds nothing else is freed once it is written.
   *
   * @returns the size after the append.
   */
  appendUpload(uploadId: string, offset: number, source: ByteSource, options?: AppendOptions): Promise<number>;

  /**
   * The digest of the bytes received so far: at once if they were hashed as they were written; otherwise, after a restart for
   * one, they are read. Throws code `upload-unknown` if there is no such upload.
   */
  digestUpload(uploadId: string, algorithm: HashAlgorithm, signal?: AbortSignal): Promise<UploadDigest>;

  /**
   * Makes the upload's bytes durable, then visible under `digest`, in one step, and ends the upload. If the blob exists
   * already, it stays and the upload is discarded; one of another size is damaged, and is replaced.
   *
   * Bytes of another digest stay an upload that can go on (code `digest-mismatch`). Throws code `upload-unknown` if there is
   * no such upload.
   */
  publishUpload(uploadId: string, digest: string): Promise<void>;

  /** @returns whether there was such an upload. */
  deleteUpload(uploadId: string): Promise<boolean>;

  /** IDs of all uploads, in no particular order. */
  listUploads(): AsyncIterable<string>;
}

/** `damaged`: bytes that should be there are not. `unavailable`: the blobs cannot be reached, or not read or written. */
export type BlobsErrorCode =
  | 'upload-exists'
  | 'upload-unknown'
  | 'upload-busy'
  | 'wrong-offset'
  | 'digest-mismatch'
  | 'no-space'
  | 'damaged'
  | 'unavailable';

export class BlobsError extends Error {
  override readonly name = 'BlobsError';
  readonly code: BlobsErrorCode;

  constructor(code: BlobsErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}

/** An upload is not what it was to be published as. */
export function digestMismatch(uploadId: string, { actual, digest }: { actual: string; digest: string }): BlobsError {
  return new BlobsError('digest-mismatch', `Upload "${uploadId}" has ${actual}, not ${digest}`);
}

/** How many bytes some chunks have. */
export function lengthOf(chunks: readonly Uint8Array[]): number {
  return chunks.reduce((sum, { byteLength }) => sum + byteLength, 0);
}

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
