/** A client that sends bytes in pieces and gathers what it receives. */
import { connect } from 'node:net';
import { setImmediate } from 'node:timers/promises';
import { systemClock } from '../../core/clock/system-clock.ts';

/** Where a server listens: a port of this machine, or a path. */
export type Listening = { readonly port: number } | { readonly path: string };

export interface Exchanged {
  /** Latin-1, a character for each byte. */
  readonly received: string;
  /** Whether the server has closed the connection by itself. */
  readonly isClosed: boolean;
}

export interface ExchangeOptions {
  /** After so long without a byte, the client closes the connection. */
  readonly quietMs: number;
  /** Whether nothing more is expected. */
  readonly isDone?: (received: string) => boolean;
}

/** Sends the pieces, each in a packet of its own as far as the system allows, and waits until the connection is closed. */
export async function exchange(
  to: Listening,
  pieces: readonly string[],
  { quietMs, isDone = () => false }: ExchangeOptions,
): Promise<Exchanged> {
  const socket = 'port' in to ? connect(to.port, '127.0.0.1') : connect(to.path);
  socket.setNoDelay();
  let received = '';
  let isClosed = true;
  let leaving: Disposable | undefined;
  const leave = () => {
    isClosed = false;
    socket.destroy();
  };
  const wait = () => {
    leaving?.[Symbol.dispose]();
    leaving = systemClock.after(quietMs, leave);
  };
  const closed = new Promise<void>((resolve) => void socket.once('close', () => resolve()));
  socket.on('error', () => {});
  socket.on('data', (chunk) => {
    received += chunk.toString('latin1');
    if (isDone(received)) leave();
    else wait();
  });
  wait();
  for (const piece of pieces) {
    if (socket.destroyed) break;
    await new Promise<void>((resolve) => void socket.write(piece, 'latin1', () => resolve()));
    if (pieces.length > 1) await setImmediate();
  }
  wait();
  await closed;
  leaving?.[Symbol.dispose]();
  return { received, isClosed };
}
