/**
 * How slowly a client may send. A connection that trickles costs as much as one that works, and a few thousand of them
 * would hold all that a process can have open. What was received of an upload stays, so that an honest client loses a
 * request and not a layer.
 */
import type { IncomingMessage } from 'node:http';
import type { Clock } from '../../core/clock/clock.ts';
import { RegistryError } from '../errors.ts';

/** In this much time spent waiting for a client … */
const windowMs = 120_000;

/** … at least so much must come: half a KiB a second, a tenth of what a telephone line carries. */
const minWindowBytes = 64 * 1024;

/** How often it is looked. */
const lookEveryMs = 10_000;

interface PacedBody extends Disposable {
  /** The body's chunks, as they come. Reading them may end early: the request is not destroyed. */
  readonly chunks: AsyncIterable<Uint8Array>;
  /** Aborts with `too-slow` when a window went by in which too little came. */
  readonly signal: AbortSignal;
}

/** A request's body, watched until disposed. While we write, the client need not send: that time does not count. */
export function paced(request: IncomingMessage, clock: Clock): PacedBody {
  const slow = new AbortController();
  let waitedMs = 0;
  let cameBytes = 0;
  let waitsSince: Date | undefined;
  const countWaiting = () => {
    const now = clock.now();
    if (waitsSince) waitedMs += now.getTime() - waitsSince.getTime();
    return now;
  };
  const look = clock.every(lookEveryMs, () => {
    const now = countWaiting();
    if (waitsSince) waitsSince = now;
    if (waitedMs < windowMs) return;
    if (cameBytes < minWindowBytes) slow.abort(new RegistryError('too-slow'));
    waitedMs = 0;
    cameBytes = 0;
  });
  async function* watched(): AsyncGenerator<Uint8Array, void, undefined> {
    waitsSince = clock.now();
    // Destroying the request when reading ends early would keep the client from reading why.
    const body: AsyncIterable<Uint8Array> = request.iterator({ destroyOnReturn: false });
    for await (const chunk of body) {
      countWaiting();
      waitsSince = undefined;
      cameBytes += chunk.length;
      yield chunk;
      waitsSince = clock.now();
    }
  }
  return { chunks: watched(), signal: slow.signal, [Symbol.dispose]: () => look[Symbol.dispose]() };
}
