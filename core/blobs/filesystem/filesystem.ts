/** Blobs as files; `layout.ts` describes the folders. */
import { eitherSignal } from '../../async/abortable.ts';
import { access, constants, open, rename, stat, unlink, utimes } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { Readable } from 'node:stream';
import type { Clock } from '../../clock/clock.ts';
import { systemClock } from '../../clock/system-clock.ts';
import type { DiskReserve } from '../../files/disk-reserve.ts';
import { makeDurableFolder, syncFolder } from '../../files/durable.ts';
import { ifPresent, systemCode } from '../../files/system-code.ts';
import { algorithmOf } from '../../hash/hash.ts';
import type { HashAlgorithm } from '../../hash/hash.ts';
import type { HashThreads } from '../../hash/hash-threads.ts';
import type { Log } from '../../log/log.ts';
import {
  assertOffset,
  assertRange,
  assertSameDigest,
  BlobsError,
  unknownUpload,
  uploadBusy,
  uploadExists,
} from '../blobs.ts';
import type {
  AppendOptions,
  BlobInfo,
  Blobs,
  ByteRange,
  ByteSource,
  OpenBlob,
  UploadDigest,
  UploadInfo,
} from '../blobs.ts';
import { fileErrors, makeDurable } from './errors.ts';
import { generationOf, openUpload, orDiscard, readFile, remove, removePublished } from './files.ts';
import { FileLayout } from './layout.ts';
import { openBlobFile } from './blob-file.ts';
import { ReadBuffers } from './read-buffers.ts';
import { UploadHashes } from '../upload-hashes.ts';
import { writeChunks } from './write-chunks.ts';

export interface FileBlobsOptions {
  /** The folder of the files; created if missing. */
  readonly folder: string;
  /** The reserve of the disk: writes that would use it fail with code `no-space`. Default: none. */
  readonly reserve?: DiskReserve;
  readonly hashing: HashThreads;
  /** Expires the hashes of idle uploads. Default: the machine's clock. */
  readonly clock?: Clock;
  readonly log: Log;
}

/** Opens the blobs in `folder`. Throws `BlobsError` `unavailable` if the folder cannot be used. */
export async function openFileBlobs(options: FileBlobsOptions): Promise<Blobs> {
  const layout = new FileLayout(options.folder);
  await fileErrors(async () => {
    await layout.create();
    await removePublished(layout.uploadsFolder, options.log);
  });
  return new FileBlobs(layout, options);
}

class FileBlobs implements Blobs {
  readonly #layout: FileLayout;
  readonly #reserve: DiskReserve | undefined;
  readonly #hashes: UploadHashes;
  /** The exclusive operations on uploads, by upload ID. */
  readonly #busy = new Map<string, Promise<unknown>>();
  /** Folders of blobs that were created in this process, with the creation in progress. */
  readonly #folders = new Map<string, Promise<void>>();
  readonly #buffers = new ReadBuffers();
  readonly #closing = new AbortController();

  constructor(layout: FileLayout, { reserve, hashing, clock = systemClock }: FileBlobsOptions) {
    this.#layout = layout;
    this.#reserve = reserve;
    this.#hashes = new UploadHashes(hashing, clock);
  }

  async ping(): Promise<void> {
    this.#assertOpen();
    await fileErrors(async () => {
      await access(this.#layout.blobsFolder, constants.R_OK | constants.W_OK);
      await access(this.#layout.uploadsFolder, constants.R_OK | constants.W_OK);
    });
  }

  async stat(digest: string): Promise<BlobInfo | undefined> {
    const path = this.#blobPath(digest);
    const found = await fileErrors(() => ifPresent(stat(path)));
    return found && { sizeBytes: found.size, generation: generationOf(found) };
  }

  async read(digest: string, range?: ByteRange): Promise<Readable | undefined> {
    const path = this.#blobPath(digest);
    assertRange(range);
    return await readFile(path, range);
  }

  async open(digest: string): Promise<OpenBlob | undefined> {
    const path = this.#blobPath(digest);
    return await fileErrors(async () => await openBlobFile(path, this.#buffers));
  }

  async delete(digest: string, generation?: string): Promise<boolean> {
    const path = this.#blobPath(digest);
    if (generation !== undefined && (await this.stat(digest))?.generation !== generation) return false;
    return await remove(path);
  }

  async renew(digest: string): Promise<void> {
    const path = this.#blobPath(digest);
    const now = new Date();
    await fileErrors(() => ifPresent(utimes(path, now, now)));
  }

  async *list(): AsyncIterable<string> {
    this.#assertOpen();
    yield* this.#layout.blobs();
  }

  async createUpload(uploadId: string): Promise<void> {
    const path = this.#uploadPath(uploadId);
    await fileErrors(async () => {
      await this.#reserve?.require();
      try {
        const file = await open(path, 'wx');
        await file.close();
      } catch (error) {
        if (systemCode(error) !== 'EEXIST') throw error;
        throw uploadExists(uploadId, error);
      }
    });
  }

  async statUpload(uploadId: string): Promise<UploadInfo | undefined> {
    const path = this.#uploadPath(uploadId);
    const found = await fileErrors(() => ifPresent(stat(path)));
    return found && { sizeBytes: found.size, touchedAt: found.mtime };
  }

  async appendUpload(
    uploadId: string,
    offset: number,
    source: ByteSource,
    { signal, algorithm = 'sha256' }: AppendOptions = {},
  ): Promise<number> {
    const path = this.#uploadPath(uploadId);
    return await this.#exclusively(uploadId, async () => {
      await using file = await openUpload(path, uploadId);
      const { size } = await fileErrors(() => file.stat());
      assertOffset(uploadId, size, offset);
      return await this.#hashes.use(uploadId, algorithm, async (uploadHash) => {
        const hash = uploadHash.canFollow(offset) ? uploadHash : undefined;
        const append = {
          signal: eitherSignal(signal, this.#closing.signal),
          hash,
          appends: () => this.#busy.size,
          reserve: this.#reserve,
        };
        await orDiscard(path, async () => await writeChunks(file, offset, source, append));
        const after = await fileErrors(() => file.stat());
        if (after.nlink === 0) throw unknownUpload(uploadId);
        return after.size;
      });
    });
  }

  async digestUpload(uploadId: string, algorithm: HashAlgorithm, signal?: AbortSignal): Promise<UploadDigest> {
    const path = this.#uploadPath(uploadId);
    return await this.#exclusively(uploadId, async () => {
      const found = await fileErrors(() => ifPresent(stat(path)));
      if (!found) throw unknownUpload(uploadId);
      const { size: sizeBytes } = found;
      return { sizeBytes, digest: await this.#digest(uploadId, { sizeBytes, algorithm, signal }) };
    });
  }

  async publishUpload(uploadId: string, digest: string): Promise<void> {
    const uploadPath = this.#uploadPath(uploadId);
    const blobPath = this.#blobPath(digest);
    return await this.#exclusively(uploadId, async () => {
      await using file = await openUpload(uploadPath, uploadId);
      const { size: sizeBytes } = await fileErrors(() => file.stat());
      const actual = await this.#digest(uploadId, { sizeBytes, algorithm: algorithmOf(digest) });
      assertSameDigest(uploadId, actual, digest);
      await fileErrors(async () => {
        if ((await ifPresent(stat(blobPath)))?.size === sizeBytes) {
          await unlink(uploadPath);
        } else {
          await orDiscard(uploadPath, async () => await makeDurable(async () => await file.sync()));
          await this.#makeFolder(dirname(blobPath));
          await rename(uploadPath, blobPath);
        }
        // Also for an existing blob: a concurrent publication may not have synced it yet.
        await syncFolder(dirname(blobPath));
        await syncFolder(this.#layout.uploadsFolder);
      });
      this.#hashes.remove(uploadId);
    });
  }

  async deleteUpload(uploadId: string): Promise<boolean> {
    const path = this.#uploadPath(uploadId);
    this.#hashes.remove(uploadId);
    return await remove(path);
  }

  async *listUploads(): AsyncIterable<string> {
    this.#assertOpen();
    yield* this.#layout.uploads();
  }

  /** Aborts the appends in progress; the bytes they wrote are kept. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#closing.abort(new BlobsError('unavailable', 'The blobs are closed'));
    await Promise.allSettled(this.#busy.values());
    this.#hashes[Symbol.dispose]();
  }

  async #digest(
    uploadId: string,
    { sizeBytes, algorithm, signal }: { sizeBytes: number; algorithm: HashAlgorithm; signal?: AbortSignal | undefined },
  ): Promise<string> {
    const read = async (start: number) => {
      const bytes = await readFile(this.#uploadPath(uploadId), { start, end: sizeBytes - 1 });
      if (!bytes) throw unknownUpload(uploadId);
      return bytes;
    };
    return await this.#hashes.use(
      uploadId,
      algorithm,
      async (hash) =>
        await fileErrors(async () => await hash.digest(sizeBytes, read, eitherSignal(signal, this.#closing.signal))),
    );
  }

  async #exclusively<R>(uploadId: string, action: () => Promise<R>): Promise<R> {
    if (this.#busy.has(uploadId)) throw uploadBusy(uploadId);
    const running = action();
    this.#busy.set(uploadId, running);
    try {
      return await running;
    } finally {
      this.#busy.delete(uploadId);
    }
  }

  /** Creates a folder of blobs once, however many publications need it. */
  async #makeFolder(folder: string): Promise<void> {
    let made = this.#folders.get(folder);
    if (!made) {
      made = makeDurableFolder(folder);
      this.#folders.set(folder, made);
      made.catch(() => this.#folders.delete(folder));
    }
    await made;
  }

  #blobPath(digest: string): string {
    this.#assertOpen();
    return this.#layout.blobPath(digest);
  }

  #uploadPath(uploadId: string): string {
    this.#assertOpen();
    return this.#layout.uploadPath(uploadId);
  }

  #assertOpen(): void {
    this.#closing.signal.throwIfAborted();
  }
}
