import { connect } from 'node:net';
import type { Socket } from 'node:net';
import { readAfterFailedWrite } from '../../core/http/read-after-failed-write.ts';
import type { ErrorBoundary } from '../../core/log/error-boundary.ts';
import type { Address } from '../lookup.ts';
import { keepAlive } from '../sockets.ts';
import { ReadBuffer } from './read-buffer.ts';
import { readByEvents, readInto } from './read-into.ts';
import { flushSoon } from './write-batch.ts';

/** The largest body that is written as one text with its head. For larger ones, separate writes cost less. */
export const maxShortBytes = 12 * 1024;

/** No bytes. */
export const nothing = Buffer.alloc(0);

/** The callbacks of a channel. */
export interface ChannelUser {
  /** Bytes have arrived. They are valid until this returns: copy them to keep them. */
  onBytes(bytes: Buffer): void;
  /** The other side has finished sending. */
  onEnd(): void;
  /** The connection is closed. No callback follows. */
  onClose(error: Error | undefined): void;
}

/** Ignores all events of a channel. */
export const unused: ChannelUser = { onBytes: () => {}, onEnd: () => {}, onClose: () => {} };

/** The connection of a client or of a backend, with back-pressure. It allocates nothing for small messages. */
export class Channel {
  readonly socket: Socket;
  user: ChannelUser;
  /** Bytes written to the connection, and bytes received from it. Node's own counters cost more. */
  sentBytes = 0;
  receivedBytes = 0;
  readonly #errorBoundary: ErrorBoundary;
  readonly #buffer = new ReadBuffer();
  /** Whether it is read by events, each of which has its own bytes. */
  #isReadByEvents = false;
  #isReleased = false;
  /** The text to write at the end of this turn, and the action after it. */
  #text = '';
  #action: (() => void) | undefined;
  #error: Error | undefined;

  private constructor(socket: Socket | Address, user: ChannelUser, errorBoundary: ErrorBoundary, isTunnel = false) {
    this.user = user;
    this.#errorBoundary = errorBoundary;
    const nextBuffer = () => this.#buffer.next();
    const onRead = (length: number, buffer: Buffer) => this.#onRead(length, buffer);
    if ('port' in socket) {
      const { host, port } = socket;
      const onread = { buffer: nextBuffer as () => Buffer, callback: onRead };
      this.socket = readAfterFailedWrite(connect({ host, port, noDelay: true, onread }));
    } else {
      this.socket = socket;
      if (isTunnel || !readInto(socket, nextBuffer, onRead)) {
        this.#isReadByEvents = true;
        socket.on('data', this.#onData).resume();
      }
    }
    keepAlive(this.socket);
    this.socket.on('error', this.#onError).on('end', this.#onEnd).on('close', this.#onClose);
  }

  /** Reads an open connection. */
  static of(socket: Socket, user: ChannelUser, errorBoundary: ErrorBoundary): Channel {
    return new Channel(socket, user, errorBoundary);
  }

  /** Reads an open connection that something else has read already, such as a tunnel. */
  static ofTunnel(socket: Socket, user: ChannelUser, errorBoundary: ErrorBoundary): Channel {
    return new Channel(socket, user, errorBoundary, true);
  }

  /** Connects to a backend. */
  static to(address: Address, user: ChannelUser, errorBoundary: ErrorBoundary): Channel {
    return new Channel(address, user, errorBoundary);
  }

  /** Writes text in Latin-1, at the end of this turn. */
  write(text: string): void {
    this.sentBytes += text.length;
    if (this.#text === '') flushSoon(this);
    this.#text += text;
  }

  /** Writes the text that waits for the end of this turn. */
  flush(): void {
    const text = this.#text;
    if (text === '') return;
    this.#text = '';
    if (this.socket.destroyed) return;
    this.socket.write(text, 'latin1');
    const action = this.#action;
    this.#action = undefined;
    if (action) this.whenFlushed(action);
  }

  /** Writes the text of a head, and bytes that are valid until this returns: in one packet, if they are few. */
  writeWith(head: string, parts: readonly Buffer[]): void {
    const length = parts.reduce((sum, part) => sum + part.length, 0);
    if (length === 0) this.write(head);
    else if (length <= maxShortBytes) this.write(head + parts.map((part) => part.toString('latin1')).join(''));
    else {
      this.write(head);
      this.writeBytes(Buffer.concat(parts));
    }
  }

  /** Writes bytes that the caller does not change afterwards. */
  writeBytes(bytes: Buffer): void {
    this.sentBytes += bytes.length;
    this.flush();
    this.socket.write(bytes);
  }

  /** Whether the system accepts more: it has everything except the text of this turn. */
  get isFree(): boolean {
    return this.socket.writableLength === 0;
  }

  /** Calls `action` when the system has everything that was written. Never, if the connection is closed before. */
  whenFlushed(action: () => void): void {
    if (this.#text !== '') this.#then(action);
    else if (this.isFree) this.#run(action);
    else this.socket.write(nothing, (error) => void (error ?? this.#run(action)));
  }

  /** Writes bytes that this channel has just read to another one. Copies them if other channels share the buffer. */
  pass(bytes: Buffer, to: Channel): void {
    to.writeBytes(this.#isReadByEvents || this.#buffer.isOwn ? bytes : Buffer.from(bytes));
  }

  /** Stops reading until another channel has written everything. */
  waitFor(to: Channel): void {
    if (to.isFree) return;
    this.pause();
    to.whenFlushed(() => this.resume());
  }

  pause(): void {
    this.socket.pause();
  }

  resume(): void {
    if (!this.#isReleased && !this.socket.destroyed) this.socket.resume();
  }

  /** Ends this side after everything that was written. The other side may still send. */
  end(): void {
    this.flush();
    this.socket.end();
  }

  /** Closes the connection when everything is written. */
  close(): void {
    this.flush();
    this.socket.destroySoon();
  }

  /** Closes the connection at once. Bytes that the system has not accepted are lost. */
  destroy(): void {
    this.flush();
    this.socket.destroy();
  }

  /** Hands the connection to another reader, which gets `unread` first. */
  release(unread: Buffer): Socket {
    this.flush();
    this.#isReleased = true;
    this.user = unused;
    const { socket } = this;
    readByEvents(socket);
    socket.off('error', this.#onError).off('end', this.#onEnd).off('close', this.#onClose).off('data', this.#onData);
    if (unread.length > 0) socket.unshift(Buffer.from(unread));
    // The new reader does not resume a paused connection.
    if (socket.isPaused()) socket.resume();
    return socket;
  }

  #onRead(length: number, buffer: Buffer): boolean {
    this.receivedBytes += length;
    this.#onBytes(this.#buffer.read(length, buffer));
    this.#buffer.fit(length, this.socket);
    return true;
  }

  #onBytes(bytes: Buffer): void {
    try {
      this.user.onBytes(bytes);
    } catch (error) {
      this.#fail(error);
    }
  }

  /** Calls `action` after the other actions at the end of this turn. */
  #then(action: () => void): void {
    const before = this.#action;
    this.#action = before
      ? () => {
          before();
          this.whenFlushed(action);
        }
      : action;
  }

  #run(action: () => void): void {
    try {
      action();
    } catch (error) {
      this.#fail(error);
    }
  }

  #fail(error: unknown): void {
    this.#errorBoundary.failed(error, () => this.destroy());
  }

  readonly #onData = (bytes: Buffer): void => {
    this.receivedBytes += bytes.length;
    this.#onBytes(bytes);
  };

  readonly #onError = (error: Error): void => void (this.#error = error);

  readonly #onEnd = (): void => this.#run(() => this.user.onEnd());

  readonly #onClose = (): void => this.#run(() => this.user.onClose(this.#error));
}
