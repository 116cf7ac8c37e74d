/**
 * Copies of blobs in a folder that all processes of a machine share:
 *
 *     <folder>/
 *     ├── sha256-9f86d081….66a1b2…    a copy, whole: its digest and its generation
 *     └── 3fc1a0….part                one that is being made, as large from the start as it will be
 *
 * A copy gets its name in one step, after its bytes are on the disk. Its time of change is when it was made, its time of access
 * when it was used last. What a process leaves half made that dies goes after an hour.
 */
import { randomUUID } from 'node:crypto';
import { open, readdir, rename, rm, stat, utimes } from 'node:fs/promises';
import { join } from 'node:path';
import { addAbortSignal } from 'node:stream';
import type { Readable } from 'node:stream';
import type { Clock } from '../clock/clock.ts';
import { makeDurableFolder } from '../files/durable.ts';
import { ifPresent } from '../files/system-code.ts';
import type { BlobInfo, OpenBlob } from './blobs.ts';
import { ReadBuffers } from './read-buffers.ts';
import { fileErrors } from './file-errors.ts';
import { openBlobFile } from './blob-file.ts';

/** A file of the folder. */
export interface CopyFile {
  readonly name: string;
  readonly sizeBytes: number;
  readonly isWhole: boolean;
  readonly usedAt: Date;
}

/** A disk may spoil what is on it: no copy is trusted for longer than this. */
const maxAgeMs = 24 * 3_600_000;

/** What has not grown for this long grows no more: a server that sends this slowly is taken for dead long before. */
const maxPartAgeMs = 3_600_000;

/** The time of last use is noted no more often than this: nothing depends on minutes, and each note is a write. */
const noteUseEveryMs = 60_000;

const partSuffix = '.part';

export class CopiesFolder {
  readonly #folder: string;
  readonly #clock: Clock;
  readonly #buffers = new ReadBuffers();

  private constructor(folder: string, clock: Clock) {
    this.#folder = folder;
    this.#clock = clock;
  }

  /** Makes the folder if it is missing. Throws `BlobsError` `unavailable` if it cannot be used. */
  static async open(path: string, clock: Clock): Promise<CopiesFolder> {
    await fileErrors(async () => await makeDurableFolder(path));
    const folder = new CopiesFolder(path, clock);
    await fileErrors(async () => await folder.tidy());
    return folder;
  }

  /** The copy of a blob of this generation, if there is one that can be trusted; dispose it. */
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
    // Another process may just have removed it, and a full disk can still be read.
    if (this.#ageMs(usedAt) > noteUseEveryMs) await utimes(path, this.#clock.now(), madeAt).catch(() => {});
    return file;
  }

  /** What takes room, copies before the half-made ones, and those first that were not used for longest. */
  async list(): Promise<CopyFile[]> {
    const files: CopyFile[] = [];
    // One after the other: those who wait for a blob come first.
    for (const name of await readdir(this.#folder)) {
      const found = await ifPresent(stat(join(this.#folder, name)));
      if (!found?.isFile()) continue;
      const isWhole = !name.endsWith(partSuffix);
      const isOver = this.#ageMs(found.mtime) > (isWhole ? maxAgeMs : maxPartAgeMs);
      if (isOver) await this.remove(name);
      else files.push({ name, sizeBytes: found.size, isWhole, usedAt: found.atime });
    }
    return files.toSorted((a, b) => Number(b.isWhole) - Number(a.isWhole) || a.usedAt.getTime() - b.usedAt.getTime());
  }

  /** Removes what is too old. */
  async tidy(): Promise<void> {
    await this.list();
  }

  async remove(name: string): Promise<void> {
    await rm(join(this.#folder, name), { force: true });
  }

  /** Removes all copies of a blob, of whatever generation; but for one, if that is named. */
  async removeAll(digest: string, but?: string): Promise<void> {
    const kept = but === undefined ? undefined : nameOf(digest, but);
    for (const name of await readdir(this.#folder)) {
      if (name.startsWith(nameOf(digest, '')) && name !== kept) await this.remove(name);
    }
  }

  /**
   * Makes a copy. Its room is taken first, so that processes that do so at a time see each other; `makeRoom` resolves to whether
   * that leaves enough. Rejects with what the source, the disk or the signal fails with; then nothing stays.
   */
  async make({ digest, blob, read, makeRoom, signal }: Making): Promise<void> {
    const part = join(this.#folder, `${randomUUID()}${partSuffix}`);
    try {
      {
        await using file = await open(part, 'wx', 0o600);
        await file.truncate(blob.sizeBytes);
        if (!(await makeRoom())) return;
        let bytes = 0;
        for await (const chunk of addAbortSignal(signal, read()) as AsyncIterable<Buffer>) {
          // From where the chunk before ended.
          await file.writeFile(chunk);
          bytes += chunk.length;
        }
        if (bytes !== blob.sizeBytes) throw new Error(`It has ${bytes} bytes, not ${blob.sizeBytes}`);
        const now = this.#clock.now();
        await file.utimes(now, now);
        // Otherwise a power cut may leave the name and the size, and not the bytes.
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

interface Making {
  readonly digest: string;
  readonly blob: BlobInfo;
  readonly read: () => Readable;
  readonly makeRoom: () => Promise<boolean>;
  readonly signal: AbortSignal;
}

function nameOf(digest: string, generation: string): string {
  return `${digest.replace(':', '-')}.${encodeURIComponent(generation)}`;
}
