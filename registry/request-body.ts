import type { IncomingMessage } from 'node:http';
import { RegistryError } from './errors.ts';
import type { RegistryErrorName } from './errors.ts';

/** A whole body that must fit in memory. Throws `tooLarge` without reading on. */
export async function readBody(
  request: IncomingMessage,
  maxBytes: number,
  tooLarge: RegistryErrorName,
): Promise<Buffer> {
  if (Number(request.headers['content-length'] ?? 0) > maxBytes) throw new RegistryError(tooLarge);
  const chunks: Buffer[] = [];
  let sizeBytes = 0;
  // Not `for await` alone: leaving that loop early would destroy the request, and the client would see no answer.
  for await (const chunk of request.iterator({ destroyOnReturn: false })) {
    sizeBytes += (chunk as Buffer).length;
    if (sizeBytes > maxBytes) throw new RegistryError(tooLarge);
    chunks.push(chunk as Buffer);
  }
  return Buffer.concat(chunks, sizeBytes);
}

/** Whether a request announces a body that is not empty. */
export function hasBody(request: IncomingMessage): boolean {
  return request.headers['transfer-encoding'] !== undefined || Number(request.headers['content-length'] ?? 0) > 0;
}
