/** Uploads an archive of an image, without Docker. */
import { createReadStream } from 'node:fs';
import { open } from 'node:fs/promises';
import { Readable } from 'node:stream';
import type { BerthClient, Image } from '../../client/index.ts';
import { Failure } from '../failure.ts';

export interface ArchivePush {
  readonly client: BerthClient;
  /** `<account>/<service>`. */
  readonly service: string;
  readonly tags: readonly string[];
  readonly signal: AbortSignal;
}

type ArchiveType = 'application/x-tar' | 'application/gzip' | 'application/zstd';

/** Uploads an archive once for each tag, and returns the digest. The API checks every digest in the archive. */
export async function pushArchive(path: string, { client, service, tags, signal }: ArchivePush): Promise<string> {
  const type = await typeOf(path);
  let image: Image | undefined;
  for (const tag of tags) {
    const file = createReadStream(path);
    const archive = Readable.toWeb(file) as ReadableStream<Uint8Array>;
    try {
      image = await client.uploadImage(service, { archive, type, tag, signal });
    } finally {
      file.destroy();
    }
  }
  return image?.digest ?? '';
}

/** Determines the type from the magic number of gzip or zstd (RFC 1952, RFC 8878). */
async function typeOf(path: string): Promise<ArchiveType> {
  try {
    await using file = await open(path);
    const { buffer } = await file.read(Buffer.alloc(4), 0, 4, 0);
    if (buffer.subarray(0, 2).equals(Buffer.from('1f8b', 'hex'))) return 'application/gzip';
    return buffer.equals(Buffer.from('28b52ffd', 'hex')) ? 'application/zstd' : 'application/x-tar';
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    const why = code === 'ENOENT' ? 'it does not exist' : code === 'EISDIR' ? 'it is a folder' : message;
    throw new Failure(`archive: Cannot read ${path}: ${why}`, { cause: error });
  }
}
