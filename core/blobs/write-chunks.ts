import type { FileHandle } from 'node:fs/promises';
import type { DiskReserve } from '../files/disk-reserve.ts';
import { free } from '../hash/owned-bytes.ts';
import { lengthOf } from './blobs.ts';
import type { ByteSource } from './blobs.ts';
import { fileErrors, makeDurable } from './file-errors.ts';
import { untilAborted } from '../async/abortable.ts';
import type { UploadHash } from './upload-hash.ts';

/**
 * As much as is written at a time, while as much again arrives. A write wakes a thread, which on a busy machine costs more
 * than the 64 KiB that a socket gives are worth.
 */
const writeBytes = 256 * 1024;

/** As much when many are written at a time: together they keep the disk busy, and must not hold much memory. */
const smallWriteBytes = 64 * 1024;

/** More appends at a time are many. */
const fewAppends = 8;

/** What comes slowly is written this often, so that a crash loses little of it. */
const writeEveryMs = 50;

/** Written bytes are sent to the disk in such portions, so that little is left to wait for when all have arrived. */
const flushBytes = 8 * 1024 * 1024;

/**
 * Writes what a source gives to a file, from `offset` on, while the next chunks arrive. When the source fails or the signal
 * aborts, it rejects with that reason, and what was given before is written. The memory of chunks is freed once they are
 * written. Throws `FlushError` if the disk fails.
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
  /** Follows what is written. */
  readonly hash: UploadHash | undefined;
  /** How many appends there are at a time, this one included. */
  readonly appends: () => number;
  /** Of the file's disk. */
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
  #soon: NodeJS.Timeout | undefined;
  #flushing: Promise<void> | undefined;
  #failure: { readonly error: unknown } | undefined;

  constructor(file: FileHandle, position: number, parts: Parts) {
    this.#file = file;
    this.#position = position;
    this.#appends = parts.appends;
    this.#reserve = parts.reserve;
    this.#hash = parts.hash;
  }

  /** Takes chunks; resolves when the next ones may come. Rejects when some before could not be written. */
  async add(chunks: readonly Uint8Array[]): Promise<void> {
    for (const chunk of chunks) {
      this.#gathered.push(chunk);
      this.#gatheredBytes += chunk.byteLength;
    }
    if (this.#gatheredBytes < (this.#appends() > fewAppends ? smallWriteBytes : writeBytes)) {
      this.#soon ??= setTimeout(() => void this.#writeNext(), writeEveryMs);
      return;
    }
    await this.#writing;
    this.#throwFailure();
    void this.#writeNext();
  }

  /** Resolves when everything is written. */
  async finish(): Promise<void> {
    await this.#writeNext();
    // Where writing failed, too: the file must not be closed while it is read.
    await this.#hash?.finish(this.#file.fd);
    await this.#flushing;
    this.#throwFailure();
  }

  /** Writes what is gathered, after all that was gathered before. Never rejects. */
  async #writeNext(): Promise<void> {
    clearTimeout(this.#soon);
    this.#soon = undefined;
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
      // Rare: a disk that is just full, or a signal. One write says which.
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
