/** A client that sends bytes and disconnects at a chosen byte. */
import { once } from 'node:events';
import { connect } from 'node:net';
import type { Socket } from 'node:net';
import type { Disconnect } from './plan.ts';

/** The point at which a client disconnects. Default: when the other side does. */
export interface Cut {
  /** Whether `count` counts bytes sent or received. */
  readonly after: 'sent' | 'received';
  readonly count: number;
  readonly how: Disconnect;
  /** A delay before the client disconnects. */
  readonly delayMs?: number;
}

/** The time that a client waits for a response after it has ended its half of the connection. */
const halfOpenMs = 100;

/** A connection that stays open for longer is stuck, even on a busy machine. */
const stuckMs = 45_000;

/** Sends bytes to a port of this machine, and disconnects. Returns whether the connection was closed in time. */
export async function send(port: number, bytes: Buffer, cut?: Cut): Promise<boolean> {
  const socket = connect(port, '127.0.0.1').setNoDelay();
  socket.on('error', () => {});
  const closed = new Promise<void>((resolve) => void socket.once('close', () => resolve()));
  let isStuck = false;
  const limit = setTimeout(() => {
    isStuck = true;
    socket.destroy();
  }, stuckMs);
  const sent = cut?.after === 'sent' ? bytes.subarray(0, cut.count) : bytes;
  if (sent.length > 0) socket.write(sent, () => void (cut?.after === 'sent' && disconnectLater(socket, cut)));
  else socket.once('connect', () => disconnect(socket, cut?.how ?? 'destroy'));
  let received = 0;
  socket.on('data', (chunk: Buffer) => {
    received += chunk.length;
    if (cut?.after === 'received' && received >= cut.count) disconnect(socket, cut.how);
  });
  await closed;
  clearTimeout(limit);
  return !isStuck;
}

function disconnectLater(socket: Socket, { how, delayMs }: Cut): void {
  if (delayMs === undefined) disconnect(socket, how);
  else setTimeout(() => disconnect(socket, how), delayMs);
}

function disconnect(socket: Socket, how: Disconnect): void {
  if (how === 'destroy') socket.destroy();
  else if (how === 'reset') socket.resetAndDestroy();
  else {
    socket.end();
    setTimeout(() => socket.destroy(), halfOpenMs).unref();
  }
}

/** A connection that stays open, to a backend that echoes all bytes. */
export class ControlConnection {
  readonly #socket: Socket;
  readonly #message: () => string;
  #text = '';
  #change = Promise.withResolvers<void>();

  private constructor(socket: Socket, message: () => string) {
    this.#socket = socket;
    this.#message = message;
    const onChange = () => {
      this.#change.resolve();
      this.#change = Promise.withResolvers();
    };
    socket.on('data', (bytes: Buffer) => {
      this.#text += bytes.toString('latin1');
      onChange();
    });
    socket.on('error', () => {}).on('close', onChange);
  }

  /** Connects. Each `ask` sends the current message. */
  static async open(port: number, message: () => string): Promise<ControlConnection> {
    const socket = connect(port, '127.0.0.1');
    await once(socket, 'connect');
    return new ControlConnection(socket, message);
  }

  /** Sends the message, and waits until the response has this suffix. Throws if the connection is closed. */
  async ask(suffix: string): Promise<void> {
    this.#text = '';
    this.#socket.write(this.#message());
    while (!this.#text.endsWith(suffix)) {
      if (this.#socket.destroyed) throw new Error('The connection of another session was closed');
      await this.#change.promise;
    }
  }

  close(): void {
    this.#socket.destroy();
  }
}
