/** A client that sends bytes in pieces and collects the bytes that it receives. */
import { connect } from 'node:net';
import { setImmediate } from 'node:timers/promises';
import { systemClock } from '../../core/clock/system-clock.ts';

/** The address of a server: a port of this machine, or the path of a socket. */
export type Listening = { readonly port: number } | { readonly path: string };

export interface Exchanged {
  /** Latin-1, a character for each byte. */
  readonly received: string;
  /** Whether the server has closed the connection. */
  readonly isClosed: boolean;
}

export interface ExchangeOptions {
  /** After this time without a byte, the client closes the connection. */
  readonly quietMs: number;
  /** Whether the received bytes are complete. */
  readonly isDone?: (received: string) => boolean;
}

/** Sends the pieces, each in its own packet as far as the system allows, and waits until the connection is closed. */
export async function exchange(
  to: Listening,
  pieces: readonly string[],
  { quietMs, isDone = () => false }: ExchangeOptions,
): Promise<Exchanged> {
  const socket = 'port' in to ? connect(to.port, '127.0.0.1') : connect(to.path);
  socket.setNoDelay();
  let received = '';
  let isClosed = true;
  let timeout: Disposable | undefined;
  const disconnect = () => {
    isClosed = false;
    socket.destroy();
  };
  const wait = () => {
    timeout?.[Symbol.dispose]();
    timeout = systemClock.after(quietMs, disconnect);
  };
  const closed = new Promise<void>((resolve) => void socket.once('close', () => resolve()));
  socket.on('error', () => {});
  socket.on('data', (chunk) => {
    received += chunk.toString('latin1');
    if (isDone(received)) disconnect();
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
  timeout?.[Symbol.dispose]();
  return { received, isClosed };
}
