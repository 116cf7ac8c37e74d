import type { IncomingMessage } from 'node:http';
import type { Clock } from '../../core/clock/clock.ts';
import { lengthOf } from '../../core/blobs/blobs.ts';
import type { ByteSource } from '../../core/blobs/blobs.ts';
import { untilAborted } from '../../core/blobs/until-aborted.ts';
import { RegistryError } from '../errors.ts';
import type { RegistryErrorName } from '../errors.ts';
import { paced } from './pace.ts';

/** A whole body that must fit in memory. Throws `tooLarge` without reading on, and `too-slow`. */
export async function readBody(
  request: IncomingMessage,
  clock: Clock,
  { maxBytes, tooLarge }: { readonly maxBytes: number; readonly tooLarge: RegistryErrorName },
): Promise<Buffer> {
  if (Number(request.headers['content-length'] ?? 0) > maxBytes) throw new RegistryError(tooLarge);
  using body = paced(request, clock);
  const chunks: Uint8Array[] = [];
  let sizeBytes = 0;
  for await (const came of untilAborted(body.bytes, body.signal)) {
    sizeBytes += lengthOf(came);
    if (sizeBytes > maxBytes) throw new RegistryError(tooLarge);
    chunks.push(...came);
  }
  return Buffer.concat(chunks, sizeBytes);
}

/** Whether a request announces a body that is not empty. */
export function hasBody(request: IncomingMessage): boolean {
  return request.headers['transfer-encoding'] !== undefined || Number(request.headers['content-length'] ?? 0) > 0;
}

/** A body that was announced to be of `sizeBytes`. Throws `size-invalid` if it is not; what fits is handed on before. */
export async function* exactly(sizeBytes: number, body: ByteSource): AsyncGenerator<readonly Uint8Array[], void> {
  let left = sizeBytes;
  for await (const chunks of body) {
    const cameBytes = lengthOf(chunks);
    if (cameBytes <= left) yield chunks;
    else yield [Buffer.concat(chunks, left)];
    left -= cameBytes;
    if (left < 0) throw new RegistryError('size-invalid');
  }
  if (left > 0) throw new RegistryError('size-invalid');
}
