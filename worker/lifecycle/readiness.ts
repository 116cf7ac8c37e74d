/** When a started backend is ready: as soon as its port accepts a connection. */
import { connect } from 'node:net';
import type { Clock } from '../../core/clock/clock.ts';
import { advance, becomeReady } from '../../model/backend.ts';
import type { WorkerContext } from '../context.ts';
import type { Run } from './run.ts';

/** A refused attempt costs 50 µs, so a port that opens within the first seconds is found at once. */
const tightPauseMs = 4;
const tightForMs = 5_000;

/** To an application that starts slowly, a tenth of a second makes no difference. */
const longestPauseMs = 100;

/** The kernel resends a lost SYN after a second; a new attempt is faster. On a bridge an answer takes 0.1 ms. */
const attemptTimeoutMs = 250;

interface Address {
  readonly host: string;
  readonly port: number;
}

/** Waits until the started container of a run listens on its port, then writes `ready`. */
export async function becomeReadyWhenListening(worker: WorkerContext, run: Run): Promise<void> {
  const { clock } = worker;
  if (run.address === undefined) throw new Error('A container without an address cannot become ready');
  const address = { host: run.address, port: run.backend.port };
  const startedAt = clock.now();
  void run.write((backend) => advance(advance(backend, 'starting', startedAt), 'waiting', startedAt));
  await untilListening(address, clock, run.startUpSignal);
  const readyAt = clock.now();
  let isChanged = false;
  const ready = await run.write((backend) => {
    const next = becomeReady(backend, address, readyAt);
    isChanged = next !== backend;
    return next;
  });
  if (!ready?.readyAt || !isChanged) return;
  const ms = ready.readyAt.getTime() - ready.createdAt.getTime();
  worker.metrics.spawned('ready', ms / 1000);
  worker.log.info({ backend: run.id, ms }, 'Backend is ready');
}

/** The pause before the next attempt, this long after the first attempt. */
export function pauseAfter(elapsedMs: number): number {
  if (elapsedMs < tightForMs) return tightPauseMs;
  return Math.min(tightPauseMs + (elapsedMs - tightForMs) / 100, longestPauseMs);
}

/**
 * Waits until a port accepts a connection. The application sees only that connection, which is closed at once. Rejects with the
 * signal's reason when it aborts.
 */
export async function untilListening(address: Address, clock: Clock, signal: AbortSignal): Promise<void> {
  const startMs = performance.now();
  while (!(await accepts(address, signal))) {
    await clock.sleep(pauseAfter(performance.now() - startMs), signal);
  }
}

async function accepts({ host, port }: Address, signal: AbortSignal): Promise<boolean> {
  signal.throwIfAborted();
  const socket = connect({ host, port });
  socket.setTimeout(attemptTimeoutMs);
  const closed = new AbortController();
  socket.once('close', () => closed.abort());
  try {
    return await new Promise<boolean>((resolve, reject) => {
      socket.once('connect', () => resolve(true));
      socket.once('timeout', () => resolve(false));
      socket.once('error', () => resolve(false));
      signal.addEventListener('abort', () => reject(signal.reason as Error), { once: true, signal: closed.signal });
    });
  } finally {
    socket.destroy();
  }
}
