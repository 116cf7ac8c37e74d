/**
 * How slowly a client may send. A connection that trickles costs as much as one that works, and a few thousand of them
 * would hold all that a process can have open. What was received of an upload stays, so that an honest client loses a
 * request and not a layer.
 */
import type { Readable } from 'node:stream';
import type { ByteSource } from '../../core/blobs/blobs.ts';
import type { Clock } from '../../core/clock/clock.ts';
import { RegistryError } from '../errors.ts';
import { RequestBytes } from './request-bytes.ts';

/** In this much time spent waiting for a client … */
const windowMs = 120_000;

/** … at least so much must come: half a KiB a second, a tenth of what a telephone line carries. */
const minWindowBytes = 64 * 1024;

/** How often it is looked. */
const lookEveryMs = 10_000;

interface PacedBody extends Disposable {
  /** Reading may end early: the request is not destroyed. */
  readonly bytes: ByteSource;
  /** Aborts with `too-slow` when a window went by in which too little came. */
  readonly signal: AbortSignal;
}

/** A request's body, watched until disposed. While we write, the client need not send: that time does not count. */
export function paced(request: Readable, clock: Clock): PacedBody {
  const slow = new AbortController();
  const bytes = new RequestBytes(request, clock);
  let begun = { waitedMs: 0, cameBytes: 0 };
  const look = clock.every(lookEveryMs, () => {
    const { waitedMs, cameBytes } = bytes;
    if (waitedMs - begun.waitedMs < windowMs) return;
    if (cameBytes - begun.cameBytes < minWindowBytes) slow.abort(new RegistryError('too-slow'));
    begun = { waitedMs, cameBytes };
  });
  return {
    bytes,
    signal: slow.signal,
    [Symbol.dispose]: () => {
      look[Symbol.dispose]();
      bytes[Symbol.dispose]();
    },
  };
}
