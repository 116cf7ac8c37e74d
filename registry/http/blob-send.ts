/** Bytes of a blob as the body of an answer: the whole, a range, or several in one answer. */
import { randomBytes } from 'node:crypto';
import type { OutgoingHttpHeaders, ServerResponse } from 'node:http';
import type { ByteRange, OpenBlob } from '../../core/blobs/blobs.ts';
import { keptQuiet, send } from '../../core/blobs/send.ts';

interface Parts {
  /** In the order of the blob, none touching another. */
  readonly ranges: readonly ByteRange[];
  readonly headers: OutgoingHttpHeaders;
}

export async function sendWhole(response: ServerResponse, blob: OpenBlob, headers: OutgoingHttpHeaders): Promise<void> {
  response.writeHead(200, { ...headers, 'content-length': blob.sizeBytes });
  await blob.copyTo(response);
}

/** Several ranges go as `multipart/byteranges` (RFC 9110, section 14.6): clients that fetch what they lack of a layer ask so. */
export async function sendRanges(response: ServerResponse, blob: OpenBlob, { ranges, headers }: Parts): Promise<void> {
  const [range, ...more] = ranges;
  if (!range || more.length > 0) {
    await sendMultipart(response, blob, { ranges, headers });
    return;
  }
  const about = { 'content-length': lengthOf(range), 'content-range': contentRange(range, blob.sizeBytes) };
  response.writeHead(206, { ...headers, ...about });
  await blob.copyTo(response, range);
}

async function sendMultipart(response: ServerResponse, blob: OpenBlob, { ranges, headers }: Parts): Promise<void> {
  // Nobody can have put it into the blob.
  const boundary = randomBytes(16).toString('hex');
  const type = String(headers['content-type']);
  const parts = ranges.map((range) => ({ range, head: partHead(boundary, type, contentRange(range, blob.sizeBytes)) }));
  const end = Buffer.from(`\r\n--${boundary}--\r\n`, 'latin1');
  response.writeHead(206, {
    ...headers,
    'content-type': `multipart/byteranges; boundary=${boundary}`,
    'content-length': parts.reduce((sum, { range, head }) => sum + head.length + lengthOf(range), end.length),
  });
  using _quiet = keptQuiet(response);
  for (const { range, head } of parts) {
    await send(response, head);
    await blob.copyTo(response, range);
  }
  await send(response, end);
}

function partHead(boundary: string, type: string, range: string): Buffer {
  return Buffer.from(`\r\n--${boundary}\r\ncontent-type: ${type}\r\ncontent-range: ${range}\r\n\r\n`, 'latin1');
}

function lengthOf({ start, end }: ByteRange): number {
  return end - start + 1;
}

function contentRange({ start, end }: ByteRange, sizeBytes: number): string {
  return `bytes ${start}-${end}/${sizeBytes}`;
}
