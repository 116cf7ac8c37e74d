import type { IncomingMessage } from 'node:http';
import type { Clock } from '../core/clock/clock.ts';
import { untilAborted } from '../core/blobs/until-aborted.ts';
import { RegistryError } from './errors.ts';
import type { RegistryErrorName } from './errors.ts';
import { paced } from './blobs/pace.ts';

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
  for await (const chunk of untilAborted(body.chunks, body.signal)) {
    sizeBytes += chunk.length;
    if (sizeBytes > maxBytes) throw new RegistryError(tooLarge);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks, sizeBytes);
}

/** Whether a request announces a body that is not empty. */
export function hasBody(request: IncomingMessage): boolean {
  return request.headers['transfer-encoding'] !== undefined || Number(request.headers['content-length'] ?? 0) > 0;
}

/** A body that was announced to be of `sizeBytes`. Throws `size-invalid` if it is not; what fits is handed on before. */
export async function* exactly(
  sizeBytes: number,
  body: AsyncIterable<Uint8Array>,
): AsyncGenerator<Uint8Array, void, undefined> {
  let left = sizeBytes;
  for await (const chunk of body) {
    if (left > 0) yield chunk.subarray(0, left);
    left -= chunk.length;
    if (left < 0) throw new RegistryError('size-invalid');
  }
  if (left > 0) throw new RegistryError('size-invalid');
}
