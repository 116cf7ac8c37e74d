/** Shared by the tests of blob drivers: their data, and functions that write, read and compare content. */
import { createHash, randomUUID } from 'node:crypto';
import type { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { expect } from 'vitest';
import type { TestAPI } from 'vitest';
import { BlobsError } from '../../../core/blobs/blobs.ts';
import type { Blobs, BlobsErrorCode, ByteSource } from '../../../core/blobs/blobs.ts';
import type { Clock } from '../../../core/clock/clock.ts';
import { systemClock } from '../../../core/clock/system-clock.ts';
import { HashThreads } from '../../../core/hash/hash-threads.ts';
import { bytesOf } from '../../kit/registry/byte-source.ts';

/** Data that outlives the blobs opened on it. */
export interface BlobsData extends AsyncDisposable {
  open(parts: OpenParts): Promise<Blobs>;
  /** Damages a blob: keeps only its first `sizeBytes` bytes. */
  truncate(digest: string, sizeBytes: number): Promise<void>;
}

interface OpenParts {
  readonly hashing: HashThreads;
  readonly clock: Clock;
}

export const parts: OpenParts = { hashing: new HashThreads(systemClock), clock: systemClock };

/** More than any driver reads or writes at once. */
export const largeBytes = 3 * 1024 * 1024 + 17;

export type BlobsTest = TestAPI<{ data: BlobsData; blobs: Blobs }>;

/** A source that yields a text, and then waits until `end` is called. */
export function hangingAfter(text: string): { source: ByteSource; hangs: Promise<void>; end: () => void } {
  const reached = Promise.withResolvers<void>();
  const ending = Promise.withResolvers<void>();
  async function* source(): AsyncGenerator<readonly Uint8Array[]> {
    yield* chunks(text);
    reached.resolve();
    await ending.promise;
  }
  return { source: source(), hangs: reached.promise, end: ending.resolve };
}

export function chunks(...texts: string[]): ByteSource {
  return bytesOf(...texts.map((text) => Buffer.from(text)));
}

/** Cuts bytes into pieces as large as a socket's chunks. */
export function piecesOf(bytes: Uint8Array): Uint8Array[] {
  return Array.from({ length: Math.ceil(bytes.length / 65_536) }, (_, i) =>
    bytes.subarray(i * 65_536, (i + 1) * 65_536),
  );
}

export function digestOf(bytes: Uint8Array, algorithm: 'sha256' | 'sha512' = 'sha256'): string {
  return `${algorithm}:${createHash(algorithm).update(bytes).digest('hex')}`;
}

export async function publish(
  blobs: Blobs,
  bytes: Uint8Array,
  algorithm: 'sha256' | 'sha512' = 'sha256',
): Promise<string> {
  const uploadId = randomUUID();
  const digest = digestOf(bytes, algorithm);
  await blobs.createUpload(uploadId);
  await blobs.appendUpload(uploadId, 0, bytesOf(bytes));
  await blobs.publishUpload(uploadId, digest);
  return digest;
}

export async function generationOf(blobs: Blobs, digest: string): Promise<string | undefined> {
  return (await blobs.stat(digest))?.generation;
}

export async function readAll(blobs: Blobs, digest: string): Promise<Buffer> {
  return await buffer((await blobs.read(digest)) as Readable);
}

/** Asserts that the upload `one` contains this text. */
export async function expectUpload(blobs: Blobs, text: string): Promise<void> {
  const expected = { sizeBytes: Buffer.byteLength(text), digest: digestOf(Buffer.from(text)) };
  expect(await blobs.digestUpload('one', 'sha256')).toStrictEqual(expected);
}

export async function listOf(list: AsyncIterable<string>): Promise<string[]> {
  const items: string[] = [];
  for await (const item of list) items.push(item);
  return items;
}

export async function expectCode(operation: Promise<unknown>, code: BlobsErrorCode): Promise<void> {
  const error: unknown = await operation.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  expect(error).toBeInstanceOf(BlobsError);
  expect(error).toHaveProperty('code', code);
}
