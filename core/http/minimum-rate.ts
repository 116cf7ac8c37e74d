/**
 * The minimum rate at which a client must send a request body. A slow connection costs as much as a fast one, and a few
 * thousand slow connections would occupy all connections of a process.
 */
import type { Readable } from 'node:stream';
import type { ByteSource } from '../blobs/blobs.ts';
import type { Clock } from '../clock/clock.ts';
import { RequestBytes } from './request-bytes.ts';

/** The rate is measured over this much time spent waiting for the client. */
const windowMs = 120_000;

/** Half a KiB a second, a tenth of what a telephone line carries. */
const minWindowBytes = 64 * 1024;

const checkEveryMs = 10_000;

/** Aborts the reading of a request body that arrives too slowly. */
export class TooSlowError extends Error {
  override readonly name = 'TooSlowError';
}

interface LimitedBody extends Disposable {
  /** Reading may end early: the request is not destroyed. */
  readonly bytes: ByteSource;
  /** Aborts with a `TooSlowError` when too little has arrived in a window. */
  readonly signal: AbortSignal;
}

/** A request body under the minimum rate, until disposed. Time in which the server does not read does not count. */
export function withMinimumRate(request: Readable, clock: Clock): LimitedBody {
  const slow = new AbortController();
  const bytes = new RequestBytes(request, clock);
  let begun = { waitedMs: 0, receivedBytes: 0 };
  const check = clock.every(checkEveryMs, () => {
    const { waitedMs, receivedBytes } = bytes;
    if (waitedMs - begun.waitedMs < windowMs) return;
    if (receivedBytes - begun.receivedBytes < minWindowBytes)
      slow.abort(new TooSlowError('The body arrives too slowly'));
    begun = { waitedMs, receivedBytes };
  });
  return {
    bytes,
    signal: slow.signal,
    [Symbol.dispose]: () => {
      check[Symbol.dispose]();
      bytes[Symbol.dispose]();
    },
  };
}
