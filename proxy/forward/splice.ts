/**
 * Joins the connections of a client and of a backend after an upgrade: what arrives on one is written to the other. Into a
 * WebSocket, the proxy may insert control frames of its own.
 */
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { ErrorBoundary } from '../../core/log/error-boundary.ts';
import { closeFrame, FrameTracker, pingFrame } from './websocket-frames.ts';

/** How long one side may send after the other has finished. Closing a WebSocket takes no longer. */
const halfOpenLimitMs = 30_000;

/** After this many periods without a byte, a client has vanished even if the system still accepts data for it. */
const maxSilentPeriods = 10;

export interface SpliceEnds {
  readonly client: Duplex;
  readonly backend: Duplex;
  /** Whether both sides speak WebSocket. */
  readonly isWebSocket: boolean;
}

/** Two joined connections. When both directions have ended, or one connection has failed, both are closed. */
export class Splice {
  readonly client: Duplex;
  readonly backend: Duplex;
  /** Follows the frames of the backend. */
  readonly #frames: FrameTracker | undefined;
  /** The frame to insert at the next place between two frames. */
  #pending: Buffer | undefined;
  /** After a Close frame of the proxy, what the backend sends is dropped. */
  #isClosing = false;
  #hasHeard = true;
  #silentPeriods = 0;
  #writtenAtPing = 0;

  constructor({ client, backend, isWebSocket }: SpliceEnds, errorBoundary: ErrorBoundary) {
    this.client = client;
    this.backend = backend;
    this.#frames = isWebSocket ? new FrameTracker() : undefined;
    const onClientData = (chunk: Buffer) => {
      this.#hasHeard = true;
      if (!backend.write(chunk)) client.pause();
    };
    const onBackendData = (chunk: Buffer) => {
      if (!this.#writeToClient(chunk)) backend.pause();
    };
    const cut = () => this.destroy();
    client.on('data', errorBoundary.wrap(onClientData, cut));
    backend.on('data', errorBoundary.wrap(onBackendData, cut));
    this.#joinEnds(client, backend);
    this.#joinEnds(backend, client);
  }

  /** Sends the client what the backend sent with its agreement. */
  begin(head: Buffer): void {
    if (head.length > 0) this.#writeToClient(head);
  }

  /**
   * Closes a WebSocket with a code: the client's answer reaches the backend, which closes its connection. Does nothing to other
   * protocols, and where a Close frame is on its way already.
   */
  close(code: number, reason: string): void {
    if (!this.#frames || this.#frames.isOver || this.#isClosing) return;
    this.#insert(closeFrame(code, reason));
    this.#isClosing = this.#pending === undefined;
  }

  /**
   * Ends a period in which a client should have sent something. After one of silence, a WebSocket's client gets a Ping; if it does not
   * answer within the next one, both connections are destroyed.
   */
  endPeriod(): void {
    if (!this.#frames || this.#frames.isOver || this.#isClosing) return;
    this.#silentPeriods = this.#hasHeard ? 0 : this.#silentPeriods + 1;
    this.#hasHeard = false;
    if (this.#silentPeriods === 0) return;
    const { bytesWritten, writableLength } = this.client as Socket;
    // A slow client may still have megabytes to receive before the Ping.
    const isIdle = bytesWritten === this.#writtenAtPing && writableLength === 0 && this.#pending === undefined;
    if (this.#silentPeriods > maxSilentPeriods || (this.#silentPeriods > 1 && isIdle)) this.destroy();
    else if (this.#silentPeriods === 1 || !isIdle) this.#ping();
  }

  destroy(): void {
    this.client.destroy();
    this.backend.destroy();
  }

  #ping(): void {
    if (this.#pending === undefined && !this.client.writableNeedDrain) this.#insert(pingFrame);
    this.#writtenAtPing = (this.client as Socket).bytesWritten;
  }

  #insert(frame: Buffer): void {
    if (this.#frames?.isBetweenFrames && this.client.writable) this.client.write(frame);
    else this.#pending = frame;
  }

  #writeToClient(chunk: Buffer): boolean {
    if (this.#isClosing) return true;
    const end = this.#frames?.read(chunk) ?? -1;
    const frame = this.#pending;
    if (frame === undefined || end < 0) return this.client.write(chunk);
    this.#pending = undefined;
    this.client.write(chunk.subarray(0, end));
    const isFree = this.client.write(frame);
    if (frame === pingFrame) return end < chunk.length ? this.client.write(chunk.subarray(end)) : isFree;
    this.#isClosing = true;
    return isFree;
  }

  #joinEnds(from: Duplex, to: Duplex): void {
    to.on('drain', () => from.resume());
    from.once('end', () => {
      to.end();
      // Data in the other direction restarts the timeout.
      (from as Socket).setTimeout(halfOpenLimitMs, () => this.destroy());
    });
    // After an error, and when the connection was destroyed, the other direction has nothing to wait for.
    from.once('close', () => {
      if (from.errored || !from.readableEnded || !from.writableFinished) to.destroy();
    });
    from.resume();
  }
}
