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

/** Uploads an archive once for each tag, and returns the digest. The API checks every digest in the archive. */
export async function pushArchive(path: string, { client, service, tags, signal }: ArchivePush): Promise<string> {
  await checkReadable(path);
  let image: Image | undefined;
  for (const tag of tags) {
    const file = createReadStream(path);
    const archive = Readable.toWeb(file) as ReadableStream<Uint8Array>;
    try {
      image = await client.uploadImage(service, { archive, tag, signal });
    } finally {
      file.destroy();
    }
  }
  return image?.digest ?? '';
}

/** Reports a file that cannot be read, before the upload begins. */
async function checkReadable(path: string): Promise<void> {
  try {
    await using file = await open(path);
    await file.read(Buffer.alloc(1));
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    const why = code === 'ENOENT' ? 'it does not exist' : code === 'EISDIR' ? 'it is a folder' : message;
    throw new Failure(`archive: Cannot read ${path}: ${why}`, { cause: error });
  }
}
