import type { IncomingMessage } from 'node:http';
import { lengthOf } from '../../core/blobs/blobs.ts';
import type { ByteSource } from '../../core/blobs/blobs.ts';
import { untilAborted } from '../../core/async/abortable.ts';
import type { RegistryContext } from '../context.ts';
import { RegistryError } from '../errors.ts';
import type { RegistryErrorName } from '../error-catalogue.ts';
import { withMinimumRate } from '../../core/http/minimum-rate.ts';

interface BodyLimits {
  readonly maxBytes: number;
  readonly tooLarge: RegistryErrorName;
  /** Whose share of the memory the body uses: an account, or a network. */
  readonly account: string;
}

/**
 * Reads a whole body into memory. Throws `tooLarge` or `too-many-bodies` without reading further, `TooSlowError`, and the signal's
 * reason.
 */
export async function readBody(
  request: IncomingMessage,
  { clock, signal, bodies }: Pick<RegistryContext, 'clock' | 'signal' | 'bodies'>,
  { maxBytes, tooLarge, account }: BodyLimits,
): Promise<Buffer> {
  if (Number(request.headers['content-length'] ?? 0) > maxBytes) throw new RegistryError(tooLarge);
  using body = withMinimumRate(request, clock);
  using held = bodies.begin(account, maxBytes);
  for await (const batch of untilAborted(body.bytes, AbortSignal.any([body.signal, signal]))) {
    for (const chunk of batch) {
      const full = held.add(chunk);
      if (full === 'too-large') throw new RegistryError(tooLarge);
      if (full === 'too-many') throw new RegistryError('too-many-bodies', { headers: { 'retry-after': '1' } });
    }
  }
  return held.bytes;
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
