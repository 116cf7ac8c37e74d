import { constants, createZstdDecompress } from 'node:zlib';
import type { ZstdDecompress } from 'node:zlib';
import { maxZstdWindowLog } from './limits.ts';

/**
 * Decompresses zstd. A file may have several frames (pzstd and `cat` make such), and skippable ones. Node's decoder ends
 * without a word with the frame that ends inside a chunk, so each further frame gets a decoder of its own, with the rest.
 */
export async function* unzstd(source: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array, void, undefined> {
  let decoder: ZstdDecompress | undefined;
  try {
    for await (const chunk of source) {
      for (let rest = chunk; rest.length > 0;) {
        decoder ??= newDecoder();
        const before = decoder.bytesWritten;
        yield* decode(decoder, rest);
        const used = decoder.bytesWritten - before;
        if (used < rest.length) {
          decoder.destroy();
          decoder = undefined;
        }
        rest = rest.subarray(used);
      }
    }
    if (!decoder) return;
    // Fails if the last frame is not whole.
    decoder.end();
    for await (const bytes of decoder) yield bytes as Buffer;
  } finally {
    decoder?.destroy();
  }
}

/** What comes out of a decoder for one chunk; it decodes no faster than that is taken. */
async function* decode(decoder: ZstdDecompress, chunk: Uint8Array): AsyncGenerator<Uint8Array, void, undefined> {
  const { promise: done, resolve, reject } = Promise.withResolvers<void>();
  done.catch(() => {});
  let isDone = false;
  let wake: () => void = () => {};
  const onReadable = () => wake();
  decoder.on('error', reject).on('readable', onReadable);
  decoder.write(chunk, (error) => {
    isDone = true;
    wake();
    if (error) reject(error);
    else resolve();
  });
  try {
    for (;;) {
      const readable = new Promise<void>((resume) => (wake = resume));
      const bytes = decoder.read() as Buffer | null;
      if (bytes) yield bytes;
      else if (isDone) return await done;
      else await Promise.race([readable, done]);
    }
  } finally {
    decoder.off('error', reject).off('readable', onReadable);
  }
}

/** A decoder whose errors are told by what is done with it next, and never end the process. */
function newDecoder(): ZstdDecompress {
  const params = { [constants.ZSTD_d_windowLogMax]: maxZstdWindowLog };
  return createZstdDecompress({ params }).on('error', () => {});
}
