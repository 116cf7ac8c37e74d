import { Writable } from 'node:stream';
import type { ByteSource, OpenBlob } from '../../../core/blobs/blobs.ts';

/** Copies of chunks, one by one: what reads them may free their memory. */
export async function* bytesOf(...chunks: readonly Uint8Array[]): ByteSource {
  for (const chunk of chunks) yield [Uint8Array.from(chunk)];
}

/** What an open blob gives. */
export async function copied(blob: OpenBlob): Promise<Buffer> {
  const received: Buffer[] = [];
  const write = (chunk: Buffer, _encoding: string, done: () => void) => {
    received.push(Buffer.from(chunk));
    done();
  };
  await blob.copyTo(new Writable({ write }));
  return Buffer.concat(received);
}
