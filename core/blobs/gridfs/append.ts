/** Appends bytes to uploads. */
import type { Clock } from '../../clock/clock.ts';
import { Semaphore } from '../../async/semaphore.ts';
import { assertOffset } from '../blobs.ts';
import type { AppendOptions, ByteSource } from '../blobs.ts';
import { ChunkBuffers, ChunkWriter } from './writer.ts';
import { blobErrors } from './errors.ts';
import { acquireUpload, UploadLease } from './lease.ts';
import type { HeldUpload } from './lease.ts';
import type { Layout, UploadRecord } from './layout.ts';
import { untilAborted } from '../../async/abortable.ts';
import type { UploadHash } from '../upload-hash.ts';
import type { UploadHashes } from '../upload-hashes.ts';

interface Parts {
  readonly layout: Layout;
  readonly clock: Clock;
  /** Aborts all appends; the bytes they wrote are kept. */
  readonly closing: AbortSignal;
  readonly hashes: UploadHashes;
}

/**
 * How many chunks of all appends are sent to the server or hashed at a time: enough to keep both busy. Each is in memory three
 * times: once here, and twice in the driver.
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
    const held = await acquireUpload(this.#parts.layout, uploadId);
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
      confirm: async () => await lease.confirm(),
      permits: this.#permits,
      buffers: this.#buffers,
      hash,
    });
    await using lease = new UploadLease(layout, held, clock, () => writer.durableBytes);
    const signals = [closing, lease.lost, ...(signal ? [signal] : [])];
    this.#underWay += 1;
    try {
      await writeAll(writer, held, offset, untilAborted(source, AbortSignal.any(signals)));
    } finally {
      this.#underWay -= 1;
      this.#buffers.trim(this.#underWay);
      // Hashed bytes that are not durable may be replaced by others.
      if (hash.hashedBytes > writer.durableBytes) hash[Symbol.dispose]();
      await lease.release();
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

/** The key of an upload's hash. A later upload with the same ID has another file. */
export function hashKey({ file }: UploadRecord): string {
  return file.toHexString();
}

/** Writes the bytes of a source. If the source fails, the bytes before that are made durable anyway. */
async function writeAll(
  writer: ChunkWriter,
  { upload }: HeldUpload,
  offset: number,
  source: ByteSource,
): Promise<void> {
  assertOffset(upload._id, upload.sizeBytes, offset);
  await writer.begin();
  try {
    for await (const chunks of source) await writer.write(chunks);
  } finally {
    await writer.end();
  }
}
