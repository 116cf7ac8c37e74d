/** Finds the port of a container that accepts connections. The application sees only connections that are closed after milliseconds. */
import { connect } from 'node:net';
import type { Clock } from '../../core/clock/clock.ts';
import type { BackendAddress } from '../../model/backend.ts';
import type { ExpectedPorts } from '../../model/backend-port.ts';

/** A refused attempt costs 50 µs, so a port that opens within the first seconds is found at once. */
const tightPauseMs = 4;
const tightForMs = 5_000;

/** To an application that starts slowly, a tenth of a second makes no difference. */
const longestPauseMs = 100;

/** The kernel resends a lost SYN after a second; a new attempt is faster. On a bridge an answer takes 0.1 ms. */
const attemptTimeoutMs = 250;

/**
 * How long a connection must stay open. Some programs open a port only to see whether it is free, as the development server of Vite
 * does: they close it within a millisecond and accept nothing, and the kernel resets the connection.
 */
const settleMs = 4;

/** How long the expected port must stay closed while the other one is open: applications open their ports one after another. */
const otherwiseAfterMs = 500;

interface Expectation {
  readonly host: string;
  readonly ports: ExpectedPorts;
  /** The forward of the expected port, once there is one. */
  readonly forward?: () => ReachedPort | undefined;
}

/** A port that accepts connections. */
export type ReachedPort = Omit<BackendAddress, 'host'>;

/** The pause before the next attempt, this long after the first attempt. */
export function pauseAfter(elapsedMs: number): number {
  if (elapsedMs < tightForMs) return tightPauseMs;
  return Math.min(tightPauseMs + (elapsedMs - tightForMs) / 100, longestPauseMs);
}

/**
 * Waits until the expected port, its forward, or only the other port accepts a connection, and returns that port. The application sees
 * that connection, and on the other port an earlier one. Rejects with the signal's reason when it aborts.
 */
export async function untilListening(
  { host, ports: { port, otherwise }, forward = () => undefined }: Expectation,
  clock: Clock,
  signal: AbortSignal,
): Promise<ReachedPort> {
  const startMs = performance.now();
  let otherSinceMs: number | undefined;
  while (!(await accepts(host, port, signal))) {
    const forwarded = forward();
    if (forwarded && (await accepts(host, forwarded.port, signal))) return forwarded;
    const nowMs = performance.now();
    if (otherwise !== undefined && otherSinceMs === undefined && (await accepts(host, otherwise, signal))) {
      otherSinceMs = nowMs;
    }
    if (otherwise !== undefined && otherSinceMs !== undefined && nowMs - otherSinceMs >= otherwiseAfterMs) {
      if (await accepts(host, otherwise, signal)) return { port: otherwise };
      otherSinceMs = undefined;
    }
    await clock.sleep(pauseAfter(nowMs - startMs), signal);
  }
  return { port };
}

async function accepts(host: string, port: number, signal: AbortSignal): Promise<boolean> {
  signal.throwIfAborted();
  const socket = connect({ host, port });
  socket.setTimeout(attemptTimeoutMs);
  socket.once('connect', () => socket.setTimeout(settleMs));
  const closed = new AbortController();
  socket.once('close', () => closed.abort());
  try {
    return await new Promise<boolean>((resolve, reject) => {
      // In a busy process, the time is over before an answer that is already there is read.
      socket.once('timeout', () => setImmediate(() => resolve(!socket.connecting)));
      // The program has accepted the connection.
      socket.once('data', () => resolve(true));
      socket.once('end', () => resolve(true));
      socket.once('error', () => resolve(false));
      signal.addEventListener('abort', () => reject(signal.reason as Error), { once: true, signal: closed.signal });
    });
  } finally {
    socket.destroy();
  }
}
