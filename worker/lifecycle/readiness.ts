import { connect } from 'node:net';
import type { Clock } from '../../core/clock/clock.ts';

/** A refused attempt costs 50 µs, so a port that opens in the first seconds is noticed at once. */
const tightPauseMs = 4;
const tightForMs = 5_000;

/** An application that takes long does not notice a tenth of a second. */
const longestPauseMs = 100;

/** A lost SYN is repeated by the kernel after a second; trying anew is faster. On a bridge an answer takes 0.1 ms. */
const attemptTimeoutMs = 250;

/** How long to wait before the next attempt, this long after the first one. */
export function pauseAfter(elapsedMs: number): number {
  if (elapsedMs < tightForMs) return tightPauseMs;
  return Math.min(tightPauseMs + (elapsedMs - tightForMs) / 100, longestPauseMs);
}

/**
 * Waits until something listens on a port. The application sees one connection, the successful one, and its end.
 * Rejects with the signal's reason when it aborts.
 */
export async function untilListening(
  address: { readonly host: string; readonly port: number },
  clock: Clock,
  signal: AbortSignal,
): Promise<void> {
  const startMs = performance.now();
  while (!(await accepts(address, signal))) {
    await clock.sleep(pauseAfter(performance.now() - startMs), signal);
  }
}

/** Whether a TCP connection is accepted. Rejects with the signal's reason when it aborts. */
async function accepts(
  { host, port }: { readonly host: string; readonly port: number },
  signal: AbortSignal,
): Promise<boolean> {
  signal.throwIfAborted();
  const socket = connect({ host, port });
  socket.setTimeout(attemptTimeoutMs);
  try {
    return await new Promise<boolean>((resolve, reject) => {
      socket.once('connect', () => resolve(true));
      socket.once('timeout', () => resolve(false));
      socket.once('error', () => resolve(false));
      signal.addEventListener('abort', () => reject(signal.reason as Error), { once: true, signal: closed(socket) });
    });
  } finally {
    socket.destroy();
  }
}

function closed(socket: ReturnType<typeof connect>): AbortSignal {
  const controller = new AbortController();
  socket.once('close', () => controller.abort());
  return controller.signal;
}
