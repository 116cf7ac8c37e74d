/**
 * The port for bytes by digest. A blob is complete or absent: it becomes visible under its digest in one step, after its bytes
 * are durable. Until then its bytes are an upload, with an ID that the caller chooses; an upload survives restarts.
 *
 * Drivers hash the bytes while they write them, and publish an upload only under its own digest. They throw a `TypeError` for an
 * invalid digest, and for an upload ID that is not 1 to 64 letters, digits and hyphens.
 */
import type { Readable, Writable } from 'node:stream';
import { digestPattern } from '../../contract/names.ts';
import type { HashAlgorithm } from '../hash/hash.ts';
import { CodedError } from '../errors/coded-error.ts';

export interface BlobInfo {
  readonly sizeBytes: number;
  /** Changes when the blob is renewed, replaced, or published again after it was deleted. */
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

/** An open blob can be read to its end even if it is deleted meanwhile. */
export interface OpenBlob extends AsyncDisposable {
  readonly sizeBytes: number;

  /**
   * Writes the blob, or a range of it, to a stream, and leaves the stream open. Resolves when the stream has consumed the bytes,
   * and rejects when it is destroyed. The stream must not keep the chunks, because their memory is reused.
   */
  copyTo(to: Writable, range?: ByteRange): Promise<void>;
}

/** The size and digest of the bytes that an upload has received. */
export interface UploadDigest {
  readonly sizeBytes: number;
  readonly digest: string;
}

/**
 * Incoming bytes: each item holds all chunks that have arrived. A step of asynchronous iteration costs as much as hashing some
 * kilobytes, so several chunks share one step.
 */
export type ByteSource = AsyncIterable<readonly Uint8Array[]>;

export interface AppendOptions {
  readonly signal?: AbortSignal;
  /** The expected algorithm of the published digest, used to hash during the append. Default: sha256. */
  readonly algorithm?: HashAlgorithm;
}

export interface Blobs extends AsyncDisposable {
  /** Throws `BlobsError` if blobs cannot be stored or read. */
  ping(): Promise<void>;

  stat(digest: string): Promise<BlobInfo | undefined>;

  /** Opens a blob for sending it as fast as possible; dispose it. `undefined` if absent. */
  open(digest: string): Promise<OpenBlob | undefined>;

  /** A stream of the bytes of a blob, which reads as it is consumed. Destroying it releases its resources. `undefined` if absent. */
  read(digest: string, range?: ByteRange): Promise<Readable | undefined>;

  /**
   * Deletes a blob, or only the given generation of it. Open streams can still be read to their end.
   *
   * @returns whether there was such a blob
   */
  delete(digest: string, generation?: string): Promise<boolean>;

  /**
   * Changes the generation of a blob, so that a late deletion of the previous generation has no effect. Does nothing if the blob
   * is absent.
   */
  renew(digest: string): Promise<void>;

  /** Digests of all blobs, in no particular order. */
  list(): AsyncIterable<string>;

  /** Creates an empty upload. Throws `BlobsError` with code `upload-exists` if the ID is in use. */
  createUpload(uploadId: string): Promise<void>;

  /** `undefined` if there is no such upload. */
  statUpload(uploadId: string): Promise<UploadInfo | undefined>;

  /**
   * Adds bytes at `offset`, which must be the upload's size (otherwise code `wrong-offset`). Bytes that arrived before `source`
   * failed or `signal` aborted are kept. An append during another append or the publication of the same upload fails with code
   * `upload-busy`; if the upload is deleted meanwhile, with `upload-unknown`. The append owns the chunks: it frees their memory
   * once they are written, unless the memory holds other data.
   *
   * @returns the size after the append
   */
  appendUpload(uploadId: string, offset: number, source: ByteSource, options?: AppendOptions): Promise<number>;

  /**
   * The digest of the bytes received so far. Bytes that were not hashed when they were written, for example before a restart, are
   * read. Throws code `upload-unknown` if there is no such upload.
   */
  digestUpload(uploadId: string, algorithm: HashAlgorithm, signal?: AbortSignal): Promise<UploadDigest>;

  /**
   * Makes the upload's bytes durable, then visible under `digest` in one step, and ends the upload. An existing blob is kept and
   * the upload discarded; an existing blob of another size is damaged, and is replaced.
   *
   * Throws code `digest-mismatch` if the bytes have another digest, and keeps the upload, which can be continued. Throws code
   * `upload-unknown` if there is no such upload.
   */
  publishUpload(uploadId: string, digest: string): Promise<void>;

  /** @returns whether there was such an upload. */
  deleteUpload(uploadId: string): Promise<boolean>;

  /** IDs of all uploads, in no particular order. */
  listUploads(): AsyncIterable<string>;
}

/** `damaged`: stored bytes are missing. `unavailable`: the blobs cannot be reached, read or written. */
export type BlobsErrorCode =
  | 'upload-exists'
  | 'upload-unknown'
  | 'upload-busy'
  | 'wrong-offset'
  | 'digest-mismatch'
  | 'no-space'
  | 'damaged'
  | 'unavailable';

export class BlobsError extends CodedError<BlobsErrorCode> {
  override readonly name = 'BlobsError';
}

/** Throws `digest-mismatch` unless an upload has the digest under which it is published. */
export function assertSameDigest(uploadId: string, actual: string, digest: string): void {
  if (actual === digest) return;
  throw new BlobsError('digest-mismatch', `Upload "${uploadId}" has the digest ${actual}, not ${digest}`);
}

/** Throws `wrong-offset` unless an append starts at the end of its upload. */
export function assertOffset(uploadId: string, sizeBytes: number, offset: number): void {
  if (sizeBytes === offset) return;
  throw new BlobsError(
    'wrong-offset',
    `Upload "${uploadId}" has ${sizeBytes} bytes, so it cannot continue at ${offset}`,
  );
}

export function uploadExists(uploadId: string, cause: unknown): BlobsError {
  return new BlobsError('upload-exists', `There is already an upload "${uploadId}"`, { cause });
}

export function uploadBusy(uploadId: string): BlobsError {
  return new BlobsError('upload-busy', `Upload "${uploadId}" is in use, try again later`);
}

export function unknownUpload(uploadId: string): BlobsError {
  return new BlobsError('upload-unknown', `There is no upload "${uploadId}"`);
}

/** Throws a `RangeError` for a range that ends before it starts. */
export function assertRange(range: ByteRange | undefined): void {
  if (!range || (range.start >= 0 && range.start <= range.end)) return;
  throw new RangeError(`Not a range of bytes: ${range.start} to ${range.end}`);
}

/** The length of some chunks in bytes. */
export function lengthOf(chunks: readonly Uint8Array[]): number {
  return chunks.reduce((sum, { byteLength }) => sum + byteLength, 0);
}

/** Upload IDs become file names, so they contain no path characters. */
const uploadIdPattern = /^[a-zA-Z0-9-]{1,64}$/;

/** Throws a `TypeError` for an invalid digest, which must not become part of a path. */
export function assertDigest(digest: string): void {
  if (!isDigest(digest)) throw new TypeError(`Not a digest: ${JSON.stringify(digest)}`);
}

/** Throws a `TypeError` for an invalid upload ID. */
export function assertUploadId(uploadId: string): void {
  if (!isUploadId(uploadId)) throw new TypeError(`Not an upload ID: ${JSON.stringify(uploadId)}`);
}

/** Whether a text is an upload ID. */
export function isUploadId(text: string): boolean {
  return uploadIdPattern.test(text);
}

/** Whether a text is a digest that the registry accepts. */
export function isDigest(text: string): boolean {
  return digestPattern.test(text);
}
