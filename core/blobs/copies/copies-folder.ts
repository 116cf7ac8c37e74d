/**
 * Copies of blobs in a folder that the processes of a machine share:
 *
 *     <folder>/
 *     ├── sha256-9f86d081….66a1b2…    a complete copy: its digest and its generation
 *     └── 3fc1a0….part                a copy in progress, which has its final size from the start
 *
 * A copy is renamed in one step, after its bytes are on the disk. Its modification time is when it was made, its access time when
 * it was last used. Incomplete copies of processes that died are removed after an hour.
 */
import { randomUUID } from 'node:crypto';
import { lstat, open, readdir, rename, rm, utimes } from 'node:fs/promises';
import { join } from 'node:path';
import { addAbortSignal } from 'node:stream';
import type { Readable } from 'node:stream';
import type { Clock } from '../../clock/clock.ts';
import { makeDurableFolder } from '../../files/durable.ts';
import { ifPresent } from '../../files/system-code.ts';
import type { BlobInfo, OpenBlob } from '../blobs.ts';
import { ReadBuffers } from '../filesystem/read-buffers.ts';
import { fileErrors } from '../filesystem/errors.ts';
import { openBlobFile } from '../filesystem/blob-file.ts';

/** A file of the folder. */
export interface CopyFile {
  readonly name: string;
  readonly sizeBytes: number;
  readonly isComplete: boolean;
  readonly usedAt: Date;
}

/** Disks can corrupt data, so no copy is used for longer than this. */
const maxAgeMs = 24 * 3_600_000;

/** An incomplete copy that has not grown for this long is abandoned: reads from the server time out much earlier. */
const maxPartAgeMs = 3_600_000;

/** The access time is updated at most this often: minutes do not matter, and each update is a write. */
const updateAccessEveryMs = 60_000;

const partSuffix = '.part';

export class CopiesFolder {
  readonly #folder: string;
  readonly #clock: Clock;
  readonly #buffers = new ReadBuffers();

  private constructor(folder: string, clock: Clock) {
    this.#folder = folder;
    this.#clock = clock;
  }

  /** Opens a folder, and creates it if it is missing. Throws `BlobsError` `unavailable` if it cannot be used. */
  static async open(path: string, clock: Clock): Promise<CopiesFolder> {
    await fileErrors(async () => await makeDurableFolder(path));
    const folder = new CopiesFolder(path, clock);
    await fileErrors(async () => await folder.removeExpired());
    return folder;
  }

  /** Opens the copy of this generation of a blob, if it exists, is complete and has not expired; dispose it. */
  async read(digest: string, { generation, sizeBytes }: BlobInfo): Promise<OpenBlob | undefined> {
    const name = nameOf(digest, generation);
    const path = join(this.#folder, name);
    const file = await openBlobFile(path, this.#buffers);
    if (!file) return undefined;
    const { mtime: madeAt, atime: usedAt } = file.stats;
    if (file.sizeBytes !== sizeBytes || this.#ageMs(madeAt) > maxAgeMs) {
      await file[Symbol.asyncDispose]();
      await this.remove(name);
      return undefined;
    }
    // This fails if another process has just removed the file, or the disk is full. The copy can be read anyway.
    if (this.#ageMs(usedAt) > updateAccessEveryMs) await utimes(path, this.#clock.now(), madeAt).catch(() => {});
    return file;
  }

  /** All files, complete copies first, least recently used first. Removes expired files. */
  async list(): Promise<CopyFile[]> {
    let files: CopyFile[] | undefined;
    // A copy that was completed during the list has another name in the next one.
    while (!files) files = await this.#listUnlessRenamed();
    return files.toSorted(
      (a, b) => Number(b.isComplete) - Number(a.isComplete) || a.usedAt.getTime() - b.usedAt.getTime(),
    );
  }

  /** As `list`, in no order. Returns `undefined` if a copy was completed or given up meanwhile. */
  async #listUnlessRenamed(): Promise<CopyFile[] | undefined> {
    const files: CopyFile[] = [];
    // Sequentially, because clients that wait for a blob have priority.
    for (const name of await readdir(this.#folder)) {
      const isComplete = !name.endsWith(partSuffix);
      const found = await ifPresent(lstat(join(this.#folder, name)));
      if (!found && !isComplete) return undefined;
      if (!found?.isFile()) continue;
      const isExpired = this.#ageMs(found.mtime) > (isComplete ? maxAgeMs : maxPartAgeMs);
      if (isExpired) await this.remove(name);
      else files.push({ name, sizeBytes: found.size, isComplete, usedAt: found.atime });
    }
    return files;
  }

  /** Removes expired files. */
  async removeExpired(): Promise<void> {
    await this.list();
  }

  async remove(name: string): Promise<void> {
    await rm(join(this.#folder, name), { force: true });
  }

  /** Removes the copies of all generations of a blob, except one if it is named. */
  async removeAll(digest: string, except?: string): Promise<void> {
    const kept = except === undefined ? undefined : nameOf(digest, except);
    for (const name of await readdir(this.#folder)) {
      if (name.startsWith(nameOf(digest, '')) && name !== kept) await this.remove(name);
    }
  }

  /**
   * Makes a copy. Its file gets its final size first, so that concurrent processes count it in the limit; the disk allocates space as
   * bytes are written. Then `freeSpace` resolves to whether the copy fits. Rejects with the error of the source, the disk or the
   * signal, and leaves no file then.
   */
  async make({ digest, blob, read, freeSpace, signal }: NewCopy): Promise<void> {
    const part = join(this.#folder, `${randomUUID()}${partSuffix}`);
    try {
      {
        await using file = await open(part, 'wx', 0o600);
        await file.truncate(blob.sizeBytes);
        if (!(await freeSpace())) return;
        let bytes = 0;
        for await (const chunk of addAbortSignal(signal, read()) as AsyncIterable<Buffer>) {
          // Appends to the previous chunk.
          await file.writeFile(chunk);
          bytes += chunk.length;
        }
        if (bytes !== blob.sizeBytes) throw new Error(`The blob has ${bytes} bytes instead of ${blob.sizeBytes}`);
        const now = this.#clock.now();
        await file.utimes(now, now);
        // Without it, a power cut may keep the name and the size, but not the bytes.
        await file.sync();
      }
      await rename(part, join(this.#folder, nameOf(digest, blob.generation)));
      await this.removeAll(digest, blob.generation);
    } finally {
      await rm(part, { force: true });
    }
  }

  #ageMs(time: Date): number {
    return Math.abs(this.#clock.now().getTime() - time.getTime());
  }
}

interface NewCopy {
  readonly digest: string;
  readonly blob: BlobInfo;
  readonly read: () => Readable;
  readonly freeSpace: () => Promise<boolean>;
  readonly signal: AbortSignal;
}

function nameOf(digest: string, generation: string): string {
  return `${digest.replace(':', '-')}.${encodeURIComponent(generation)}`;
}
