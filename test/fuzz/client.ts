/** A client that sends bytes and leaves where it is told to. */
import { once } from 'node:events';
import { connect } from 'node:net';
import type { Socket } from 'node:net';
import type { Leaving } from './plan.ts';

/** Where a client leaves. Default: when the other side does. */
export interface Cut {
  /** Once it has sent, or received, so many bytes. */
  readonly after: 'sent' | 'received';
  readonly count: number;
  readonly how: Leaving;
  /** So much later. */
  readonly delayMs?: number;
}

/** A side that has ended its half is given this long to get an answer, and then it is gone. */
const halfOpenMs = 100;

/** However busy the machine is: a connection that stays open for longer is stuck. */
const stuckMs = 45_000;

/** Sends bytes to a port of this machine, and leaves. Returns whether the connection was closed in time. */
export async function play(port: number, bytes: Buffer, cut?: Cut): Promise<boolean> {
  const socket = connect(port, '127.0.0.1').setNoDelay();
  socket.on('error', () => {});
  const closed = new Promise<void>((resolve) => void socket.once('close', () => resolve()));
  let isStuck = false;
  const limit = setTimeout(() => {
    isStuck = true;
    socket.destroy();
  }, stuckMs);
  const sent = cut?.after === 'sent' ? bytes.subarray(0, cut.count) : bytes;
  if (sent.length > 0) socket.write(sent, () => void (cut?.after === 'sent' && leaveLater(socket, cut)));
  else socket.once('connect', () => leave(socket, cut?.how ?? 'destroy'));
  let received = 0;
  socket.on('data', (chunk: Buffer) => {
    received += chunk.length;
    if (cut?.after === 'received' && received >= cut.count) leave(socket, cut.how);
  });
  await closed;
  clearTimeout(limit);
  return !isStuck;
}

function leaveLater(socket: Socket, { how, delayMs }: Cut): void {
  if (delayMs === undefined) leave(socket, how);
  else setTimeout(() => leave(socket, how), delayMs);
}

function leave(socket: Socket, how: Leaving): void {
  if (how === 'destroy') socket.destroy();
  else if (how === 'reset') socket.resetAndDestroy();
  else {
    socket.end();
    setTimeout(() => socket.destroy(), halfOpenMs).unref();
  }
}

/** A connection that stays open, and on which everything that is sent comes back. */
export class Witness {
  readonly #socket: Socket;
  readonly #message: () => string;
  #text = '';
  #news = Promise.withResolvers<void>();

  private constructor(socket: Socket, message: () => string) {
    this.#socket = socket;
    this.#message = message;
    const onNews = () => {
      this.#news.resolve();
      this.#news = Promise.withResolvers();
    };
    socket.on('data', (bytes: Buffer) => {
      this.#text += bytes.toString('latin1');
      onNews();
    });
    socket.on('error', () => {}).on('close', onNews);
  }

  /** Connects, and asks each time with the message. */
  static async open(port: number, message: () => string): Promise<Witness> {
    const socket = connect(port, '127.0.0.1');
    await once(socket, 'connect');
    return new Witness(socket, message);
  }

  /** Sends, and waits until the answer ends as it should. Throws if the connection is closed. */
  async ask(ending: string): Promise<void> {
    this.#text = '';
    this.#socket.write(this.#message());
    while (!this.#text.endsWith(ending)) {
      if (this.#socket.destroyed) throw new Error('The connection of another session was closed');
      await this.#news.promise;
    }
  }

  close(): void {
    this.#socket.destroy();
  }
}
