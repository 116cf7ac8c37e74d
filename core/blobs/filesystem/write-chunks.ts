import type { FileHandle } from 'node:fs/promises';
import type { DiskReserve } from '../../files/disk-reserve.ts';
import { free } from '../../hash/owned-bytes.ts';
import { lengthOf } from '../blobs.ts';
import type { ByteSource } from '../blobs.ts';
import { fileErrors, makeDurable } from './errors.ts';
import { untilAborted } from '../../async/abortable.ts';
import type { UploadHash } from '../upload-hash.ts';

/**
 * The size of one write, if bytes arrive fast enough. A write wakes a thread, which on a busy machine costs more than writing the
 * 64 KiB that a socket returns.
 */
const writeBytes = 256 * 1024;

/** The size of one write with many appends: together they keep the disk busy, and must not hold much memory. */
const smallWriteBytes = 64 * 1024;

/** Up to this number of appends use the larger size. */
const fewAppends = 8;

/** Bytes of a slow client are written this often, so that a crash loses few of them. */
const writeEveryMs = 50;

/** Written bytes are synced in portions of this size, so that the last sync is short. */
const flushBytes = 8 * 1024 * 1024;

/**
 * Writes the chunks of a source to a file, from `offset` on, while the next chunks arrive. If the source fails or the signal
 * aborts, rejects with that reason after it has written the chunks before. Frees the memory of written chunks. Throws `FlushError`
 * if the disk fails.
 */
export async function writeChunks(
  file: FileHandle,
  offset: number,
  source: ByteSource,
  { signal, ...parts }: Append,
): Promise<void> {
  const writer = new WriteBehind(file, offset, parts);
  try {
    for await (const chunks of untilAborted(source, signal)) await writer.add(chunks);
  } finally {
    await writer.finish();
  }
}

interface Parts {
  /** Hashes the written bytes. */
  readonly hash: UploadHash | undefined;
  /** The number of concurrent appends, including this one. */
  readonly appends: () => number;
  /** The reserve of the file's disk. */
  readonly reserve: DiskReserve | undefined;
}

interface Append extends Parts {
  readonly signal: AbortSignal;
}

class WriteBehind {
  readonly #file: FileHandle;
  readonly #appends: Parts['appends'];
  readonly #reserve: DiskReserve | undefined;
  readonly #hash: UploadHash | undefined;
  #position: number;
  #gathered: Uint8Array[] = [];
  #gatheredBytes = 0;
  #unflushedBytes = 0;
  #writing = Promise.resolve();
  #timer: NodeJS.Timeout | undefined;
  #flushing: Promise<void> | undefined;
  #failure: { readonly error: unknown } | undefined;

  constructor(file: FileHandle, position: number, parts: Parts) {
    this.#file = file;
    this.#position = position;
    this.#appends = parts.appends;
    this.#reserve = parts.reserve;
    this.#hash = parts.hash;
  }

  /** Adds chunks; resolves when it can accept more. Rejects if an earlier write has failed. */
  async add(chunks: readonly Uint8Array[]): Promise<void> {
    for (const chunk of chunks) {
      this.#gathered.push(chunk);
      this.#gatheredBytes += chunk.byteLength;
    }
    if (this.#gatheredBytes < (this.#appends() > fewAppends ? smallWriteBytes : writeBytes)) {
      this.#timer ??= setTimeout(() => void this.#writeNext(), writeEveryMs);
      return;
    }
    await this.#writing;
    this.#throwFailure();
    void this.#writeNext();
  }

  /** Resolves when everything is written. */
  async finish(): Promise<void> {
    await this.#writeNext();
    // Also after a failed write: the file must not be closed while it is read.
    await this.#hash?.finish(this.#file.fd);
    await this.#flushing;
    this.#throwFailure();
  }

  /** Writes the gathered chunks after those before them. Never rejects. */
  async #writeNext(): Promise<void> {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#writing = this.#writing.then(async () => await this.#writeGathered());
    await this.#writing;
  }

  async #writeGathered(): Promise<void> {
    const chunks = this.#gathered;
    this.#gathered = [];
    this.#gatheredBytes = 0;
    if (chunks.length === 0 || this.#failure) return;
    try {
      await fileErrors(async () => await this.#write(chunks));
      for (const chunk of chunks) free(chunk);
      await this.#hash?.follow(this.#file.fd, this.#position);
    } catch (error) {
      this.#failure = { error };
    }
    if (this.#unflushedBytes >= flushBytes) this.#flushing ??= this.#flush();
  }

  async #write(chunks: readonly Uint8Array[]): Promise<void> {
    const sizeBytes = lengthOf(chunks);
    await this.#reserve?.require(sizeBytes);
    let { bytesWritten: done } = await this.#file.writev(chunks, this.#position);
    if (done < sizeBytes) {
      // Rare: the disk is full, or a signal interrupted the write. Another write shows which.
      const rest = Buffer.concat(chunks).subarray(done);
      for (let at = 0; at < rest.length;) {
        const { bytesWritten } = await this.#file.write(rest, at, rest.length - at, this.#position + done);
        at += bytesWritten;
        done += bytesWritten;
      }
    }
    this.#position += sizeBytes;
    this.#unflushedBytes += sizeBytes;
  }

  async #flush(): Promise<void> {
    this.#unflushedBytes = 0;
    try {
      await makeDurable(async () => await this.#file.datasync());
    } catch (error) {
      this.#failure ??= { error };
    }
    this.#flushing = undefined;
  }

  #throwFailure(): void {
    if (this.#failure) throw this.#failure.error;
  }
}
