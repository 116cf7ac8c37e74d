import type { IncomingMessage } from 'node:http';
import type { Clock } from '../../core/clock/clock.ts';
import { lengthOf } from '../../core/blobs/blobs.ts';
import type { ByteSource } from '../../core/blobs/blobs.ts';
import { untilAborted } from '../../core/async/abortable.ts';
import { RegistryError } from '../errors.ts';
import type { RegistryErrorName } from '../error-catalogue.ts';
import { withMinimumRate } from '../../core/http/minimum-rate.ts';

/** Reads a whole body into memory. Throws `tooLarge` without reading further, `TooSlowError`, and the signal's reason. */
export async function readBody(
  request: IncomingMessage,
  { clock, signal }: { readonly clock: Clock; readonly signal: AbortSignal },
  { maxBytes, tooLarge }: { readonly maxBytes: number; readonly tooLarge: RegistryErrorName },
): Promise<Buffer> {
  if (Number(request.headers['content-length'] ?? 0) > maxBytes) throw new RegistryError(tooLarge);
  using body = withMinimumRate(request, clock);
  const chunks: Uint8Array[] = [];
  let sizeBytes = 0;
  for await (const batch of untilAborted(body.bytes, AbortSignal.any([body.signal, signal]))) {
    sizeBytes += lengthOf(batch);
    if (sizeBytes > maxBytes) throw new RegistryError(tooLarge);
    chunks.push(...batch);
  }
  return Buffer.concat(chunks, sizeBytes);
}

/** Yields a body of exactly `sizeBytes`. Throws `size-invalid` for any other size, after it has yielded the bytes that fit. */
export async function* exactly(sizeBytes: number, body: ByteSource): AsyncGenerator<readonly Uint8Array[], void> {
  let left = sizeBytes;
  for await (const chunks of body) {
    const chunkBytes = lengthOf(chunks);
    if (chunkBytes <= left) yield chunks;
    else yield [Buffer.concat(chunks, left)];
    left -= chunkBytes;
    if (left < 0) throw new RegistryError('size-invalid');
  }
  if (left > 0) throw new RegistryError('size-invalid');
}
