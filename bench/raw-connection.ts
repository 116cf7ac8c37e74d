/** A kept-alive HTTP/1.1 connection that reads into one buffer: a client that uses little CPU time compared with its server. */
import { once } from 'node:events';
import { connect } from 'node:net';
import type { Socket } from 'node:net';

/** The most that a socket returns at once. */
const bufferBytes = 1024 * 1024;

const headEnd = Buffer.from('\r\n\r\n');

/** Sends one request after the other. Responses must have a length, and are discarded. */
export class RawConnection implements Disposable {
  readonly #socket: Socket;
  #onBytes: (bytes: Buffer) => void = () => {};
  #onBroken: (error: Error) => void = () => {};

  private constructor(socket: Socket) {
    this.#socket = socket;
  }

  static async open(host: string, port: number): Promise<RawConnection> {
    const buffer = Buffer.allocUnsafe(bufferBytes);
    let onBytes = (_bytes: Buffer) => {};
    const socket = connect({
      host,
      port,
      noDelay: true,
      onread: {
        buffer,
        callback: (length) => {
          onBytes(buffer.subarray(0, length));
          return true;
        },
      },
    });
    await once(socket, 'connect');
    const opened = new RawConnection(socket);
    onBytes = (bytes) => opened.#onBytes(bytes);
    socket.on('error', (error) => opened.#onBroken(error));
    socket.on('close', () => opened.#onBroken(new Error('The server closed the connection')));
    return opened;
  }

  /** Sends a head, and returns the length of the response's body. Throws if the status is not 2xx. */
  async ask(head: string, hasBody: boolean): Promise<number> {
    return await new Promise((resolve, reject) => {
      let answer: { readonly length: number; left: number } | undefined;
      let pending = Buffer.alloc(0);
      this.#onBroken = reject;
      this.#onBytes = (bytes) => {
        if (answer) answer.left -= bytes.length;
        else {
          pending = Buffer.concat([pending, bytes]);
          const end = pending.indexOf(headEnd);
          if (end < 0) return;
          const text = pending.toString('latin1', 0, end);
          const length = Number(/^content-length: *(\d+)/im.exec(text)?.[1]);
          if (!text.startsWith('HTTP/1.1 2') || Number.isNaN(length)) {
            reject(new Error(`The server returned\n${text}`));
            return;
          }
          answer = { length, left: (hasBody ? length : 0) - (pending.length - end - headEnd.length) };
        }
        if (answer.left === 0) resolve(answer.length);
        if (answer.left < 0) reject(new Error('The response is longer than its length'));
      };
      this.#socket.write(head, 'latin1');
    });
  }

  [Symbol.dispose](): void {
    this.#onBroken = () => {};
    this.#socket.destroy();
  }
}
