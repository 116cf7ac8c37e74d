/** Adding bytes to an upload that one has to oneself. */
import type { Clock } from '../clock/clock.ts';
import { Semaphore } from '../async/semaphore.ts';
import { BlobsError } from './blobs.ts';
import type { AppendOptions, ByteSource } from './blobs.ts';
import { ChunkBuffers, ChunkWriter } from './gridfs-writer.ts';
import { blobErrors } from './gridfs-errors.ts';
import { takeUpload, UploadLease } from './gridfs-lease.ts';
import type { HeldUpload } from './gridfs-lease.ts';
import type { Layout, UploadRecord } from './gridfs-layout.ts';
import { untilAborted } from '../async/abortable.ts';
import type { UploadHash } from './upload-hash.ts';
import type { UploadHashes } from './upload-hashes.ts';

interface Parts {
  readonly layout: Layout;
  readonly clock: Clock;
  /** Ends all appends; what they wrote stays. */
  readonly closing: AbortSignal;
  readonly hashes: UploadHashes;
}

/**
 * Chunks of all appends together that are being sent to the server, or hashed: enough that neither ever waits for us. Each is
 * in memory three times: as it was filled, and twice in the driver.
 */
const chunksAtATime = 4;

/** The appends of a process. */
export class Appends {
  readonly #parts: Parts;
  readonly #permits = new Semaphore(chunksAtATime);
  readonly #buffers = new ChunkBuffers();
  #underWay = 0;

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  /** As `Blobs.appendUpload`. */
  async append(uploadId: string, offset: number, source: ByteSource, options: AppendOptions): Promise<number> {
    const held = await takeUpload(this.#parts.layout, uploadId);
    const write = async (hash: UploadHash) => await this.#write(held, { hash, offset, source, signal: options.signal });
    return await this.#parts.hashes.use(
      hashKey(held.upload),
      options.algorithm ?? 'sha256',
      async (hash) => await blobErrors(async () => await write(hash)),
    );
  }

  async #write(held: HeldUpload, { hash, offset, source, signal }: Writing): Promise<number> {
    const { layout, clock, closing } = this.#parts;
    const writer: ChunkWriter = new ChunkWriter(held, {
      layout,
      prove: async () => await lease.prove(),
      permits: this.#permits,
      buffers: this.#buffers,
      hash,
    });
    await using lease = new UploadLease(layout, held, clock, () => writer.durableBytes);
    const stops = [closing, lease.lost, ...(signal ? [signal] : [])];
    this.#underWay += 1;
    try {
      const stoppable = untilAborted(source, AbortSignal.any(stops));
      await writeAll(writer, held, offset, stoppable);
    } finally {
      this.#underWay -= 1;
      this.#buffers.keep(this.#underWay);
      // Bytes that are not durable may be replaced by others.
      if (hash.hashedBytes > writer.durableBytes) hash[Symbol.dispose]();
      await lease.giveBack();
    }
    return writer.durableBytes;
  }
}

interface Writing {
  readonly hash: UploadHash;
  readonly offset: number;
  readonly source: ByteSource;
  readonly signal: AbortSignal | undefined;
}

/** By what the hash of an upload is kept: another upload of the same ID has another file. */
export function hashKey({ file }: UploadRecord): string {
  return file.toHexString();
}

/** Writes what a source gives; when that fails, what it gave before is made durable all the same. */
async function writeAll(
  writer: ChunkWriter,
  { upload }: HeldUpload,
  offset: number,
  source: ByteSource,
): Promise<void> {
  if (upload.sizeBytes !== offset) {
    const message = `Upload "${upload._id}" has ${upload.sizeBytes} bytes, so it cannot go on at ${offset}`;
    throw new BlobsError('wrong-offset', message);
  }
  await writer.begin();
  try {
    for await (const chunks of source) await writer.write(chunks);
  } finally {
    await writer.end();
  }
}
