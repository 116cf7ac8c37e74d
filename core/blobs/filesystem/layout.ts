/**
 * Blobs as files:
 *
 *     <folder>/
 *     ├── blobs/
 *     │   ├── sha256/
 *     │   │   └── 9f/              the first two digits
 *     │   │       └── 9f86d081…    one complete blob
 *     │   └── sha512/
 *     └── uploads/
 *         └── 3fc1a0…              the bytes received so far, named by the upload's ID
 *
 * An upload becomes a blob in this order: its file is synced, renamed to its digest, then both folders are synced. So a
 * file under `blobs/` is whole, after a power cut too, and there are no temporary files. One process uses the folder at a
 * time.
 */
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { makeDurableFolder } from '../../files/durable.ts';
import { assertDigest, assertUploadId, isDigest, isUploadId } from '../blobs.ts';
import { fileErrors } from './errors.ts';

const algorithms = ['sha256', 'sha512'];

/** The number of digits that name the folder of a blob: 256 folders stay small. */
const folderDigits = 2;

const blobFolder = /^[0-9a-f]{2}$/;

export class FileLayout {
  readonly blobsFolder: string;
  readonly uploadsFolder: string;

  constructor(folder: string) {
    this.blobsFolder = join(folder, 'blobs');
    this.uploadsFolder = join(folder, 'uploads');
  }

  /** Creates missing folders, durably. */
  async create(): Promise<void> {
    for (const algorithm of algorithms) await makeDurableFolder(join(this.blobsFolder, algorithm));
    await makeDurableFolder(this.uploadsFolder);
  }

  /** Throws a `TypeError` for an invalid digest. */
  blobPath(digest: string): string {
    assertDigest(digest);
    const [algorithm = '', hex = ''] = digest.split(':');
    return join(this.blobsFolder, algorithm, hex.slice(0, folderDigits), hex);
  }

  /** Throws a `TypeError` for an invalid upload ID. */
  uploadPath(uploadId: string): string {
    assertUploadId(uploadId);
    return join(this.uploadsFolder, uploadId);
  }

  /** Digests. Ignores files and folders of other programs. */
  async *blobs(): AsyncGenerator<string> {
    for (const algorithm of algorithms) {
      const algorithmFolder = join(this.blobsFolder, algorithm);
      for (const folder of await namesIn(algorithmFolder)) {
        if (!blobFolder.test(folder)) continue;
        for (const name of await namesIn(join(algorithmFolder, folder))) {
          const digest = `${algorithm}:${name}`;
          if (isDigest(digest)) yield digest;
        }
      }
    }
  }

  /** IDs of uploads. Ignores files and folders of other programs. */
  async *uploads(): AsyncGenerator<string> {
    for (const name of await namesIn(this.uploadsFolder)) if (isUploadId(name)) yield name;
  }
}

/** Reads all names at once: reading a folder in parts takes another call in a pool thread for each part. */
async function namesIn(folder: string): Promise<string[]> {
  return await fileErrors(() => readdir(folder));
}
