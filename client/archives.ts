/** Images as archives: streams of gigabytes, which are never retried. */
import type { Image } from './contract.ts';
import { newTimeLimit } from './time.ts';
import { problemOf, readJson } from './transport.ts';
import type { Transport } from './transport.ts';

export interface ArchiveUpload {
  /** The bytes, which may be compressed. */
  readonly archive: ReadableStream<Uint8Array> | Blob;
  /** Default: `application/x-tar`. */
  readonly type?: 'application/x-tar' | 'application/gzip' | 'application/zstd' | undefined;
  /** The tag to set. Default: the tags in the archive, or `latest`. */
  readonly tag?: string | undefined;
  /** The name, tag or digest of the image, if the archive contains several. */
  readonly image?: string | undefined;
  readonly signal?: AbortSignal | undefined;
}

interface ServicePath {
  readonly account: string;
  readonly service: string;
}

export async function uploadArchive(
  transport: Transport,
  path: ServicePath,
  { archive, type = 'application/x-tar', tag, image, signal }: ArchiveUpload,
): Promise<Image> {
  const { headers, ...request } = transport.prepare('uploadImage', { path, query: { tag, image } });
  // Streams can only be sent while the response is not awaited, which the standard calls "half" duplex.
  const body = { body: archive, duplex: 'half' };
  try {
    const response = await transport.send(
      { ...request, ...body, headers: { ...headers, 'content-type': type } },
      signal,
    );
    return (await readJson(response)) as Image;
  } catch (error) {
    signal?.throwIfAborted();
    throw problemOf(error);
  }
}

export async function downloadArchive(
  transport: Transport,
  path: ServicePath & { readonly digest: string },
  { signal, timeoutMs = transport.timeoutMs }: { signal?: AbortSignal | undefined; timeoutMs?: number | undefined },
): Promise<Response> {
  const { headers, ...request } = transport.prepare('imageArchive', { path });
  const limit = newTimeLimit(`No response within ${timeoutMs} ms`, signal);
  try {
    limit.restart(timeoutMs);
    const response = await transport.send({ ...request, headers: { ...headers, accept: '*/*' } }, limit.signal);
    // The signal can still abort the body.
    limit.pause();
    return response;
  } catch (error) {
    limit.end();
    signal?.throwIfAborted();
    throw problemOf(error, limit.signal);
  }
}
