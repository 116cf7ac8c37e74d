/** Adding bytes to an upload that one has to oneself. */
import type { Clock } from '../clock/clock.ts';
import { Slots } from '../async/slots.ts';
import { BlobsError } from './blobs.ts';
import type { AppendOptions, ByteSource } from './blobs.ts';
import { ChunkBuffers } from './chunk-buffers.ts';
import { takeUpload, UploadLease } from './gridfs-lease.ts';
import type { HeldUpload } from './gridfs-lease.ts';
import type { Layout } from './gridfs-layout.ts';
import { ChunkWriter } from './gridfs-writer.ts';
import { untilAborted } from './until-aborted.ts';

interface Parts {
  readonly layout: Layout;
  readonly clock: Clock;
  /** Ends all appends; what they wrote stays. */
  readonly closing: AbortSignal;
}

/**
 * Chunks of all appends together that are on their way to the server, or to the thread that hashes: enough that neither ever
 * waits for us. Each is in memory three times: as it was filled, and twice in the driver.
 */
const chunksAtATime = 4;

/** The appends of a process. */
export class Appends {
  readonly #parts: Parts;
  readonly #slots = new Slots(chunksAtATime);
  readonly #buffers = new ChunkBuffers();
  #underWay = 0;

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  /** As `Blobs.appendUpload`. */
  async append(uploadId: string, offset: number, source: ByteSource, options: AppendOptions): Promise<number> {
    const { layout, clock, closing } = this.#parts;
    const held = await takeUpload(layout, uploadId);
    const writer: ChunkWriter = new ChunkWriter(held, {
      layout,
      prove: async () => await lease.prove(),
      slots: this.#slots,
      buffers: this.#buffers,
      taker: options.taker,
    });
    using lease = new UploadLease(layout, held, clock, () => writer.durableBytes);
    const stops = [closing, lease.lost, ...(options.signal ? [options.signal] : [])];
    this.#underWay += 1;
    try {
      const stoppable = untilAborted(source, AbortSignal.any(stops));
      await writeAll(writer, held, offset, stoppable);
    } finally {
      this.#underWay -= 1;
      this.#buffers.keep(this.#underWay);
      await lease.giveBack();
    }
    return writer.durableBytes;
  }
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
