import { Writable } from 'node:stream';
import type { ByteSource, OpenBlob } from '../../../core/blobs/blobs.ts';

/** A source of copies of chunks, because the driver may free their memory. */
export async function* bytesOf(...chunks: readonly Uint8Array[]): ByteSource {
  for (const chunk of chunks) yield [Uint8Array.from(chunk)];
}

/** The content of an open blob. */
export async function copied(blob: OpenBlob): Promise<Buffer> {
  const received: Buffer[] = [];
  const write = (chunk: Buffer, _encoding: string, done: () => void) => {
    received.push(Buffer.from(chunk));
    done();
  };
  await blob.copyTo(new Writable({ write }));
  return Buffer.concat(received);
}
