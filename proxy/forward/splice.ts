/**
 * Joins the connections of a client and of a backend after an upgrade: bytes that arrive on one are written to the other. The proxy may
 * insert its own control frames into a WebSocket.
 */
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { ErrorBoundary } from '../../core/log/error-boundary.ts';
import { closeFrame, FrameTracker, pingFrame } from './websocket-frames.ts';

/** How long one side may send after the other has finished. Closing a WebSocket takes no longer. */
const halfOpenLimitMs = 30_000;

/** After this many periods without a byte, a client counts as vanished even if the system still accepts data for it. */
const maxSilentPeriods = 10;

export interface SpliceEnds {
  readonly client: Duplex;
  readonly backend: Duplex;
  /** Whether both sides speak WebSocket. */
  readonly isWebSocket: boolean;
  /** The ID of the backend. */
  readonly backendId: string;
}

/** The parts that all splices share. */
export interface SpliceOwner {
  readonly errorBoundary: ErrorBoundary;
  /** Called when both sides are closed. */
  readonly onClosed: (splice: Splice) => void;
}

/** The callbacks of a splice. */
export interface SpliceUser {
  onClientClosed(): void;
  /** Both sides are closed. */
  onClosed(): void;
}

/**
 * Two joined connections. When both directions have ended, or one connection has failed, both are closed. Thousands may be idle for
 * hours, so their listeners are functions that all of them share: closures take half a kilobyte each.
 */
export class Splice {
  readonly client: Duplex;
  readonly backend: Duplex;
  readonly backendId: string;
  user: SpliceUser | undefined;
  readonly #owner: SpliceOwner;
  /** Follows the frames of the backend. */
  readonly #frames: FrameTracker | undefined;
  /** The frame to insert at the next place between two frames. */
  #pending: Buffer | undefined;
  /** After a Close frame of the proxy, further bytes of the backend are dropped. */
  #isClosing = false;
  #hasReceived = true;
  #silentPeriods = 0;
  #writtenAtPing = 0;

  constructor({ client, backend, isWebSocket, backendId }: SpliceEnds, owner: SpliceOwner) {
    this.client = client;
    this.backend = backend;
    this.backendId = backendId;
    this.#owner = owner;
    this.#frames = isWebSocket ? new FrameTracker() : undefined;
    for (const end of [client, backend] as SpliceEnd[]) {
      end[spliceOf] = this;
      end.on('data', onData).on('drain', onDrain).on('end', onEnd).on('close', onClose).resume();
    }
  }

  /** Sends the client the bytes that followed the backend's agreement. */
  begin(head: Buffer): void {
    if (head.length > 0) this.#writeToClient(head);
  }

  /**
   * Closes a WebSocket with a code: the client's answer reaches the backend, which closes its connection. Does nothing for other
   * protocols, or if a Close frame was sent already.
   */
  close(code: number, reason: string): void {
    if (!this.#frames || this.#frames.hasEnded || this.#isClosing) return;
    this.#insert(closeFrame(code, reason));
    this.#isClosing = this.#pending === undefined;
  }

  /**
   * Ends a period. After a silent period, the client of a WebSocket gets a Ping; if the client does not answer within the next period,
   * both connections are destroyed.
   */
  endPeriod(): void {
    if (!this.#frames || this.#frames.hasEnded || this.#isClosing) return;
    this.#silentPeriods = this.#hasReceived ? 0 : this.#silentPeriods + 1;
    this.#hasReceived = false;
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

  /** A side has sent something. */
  onData(from: Duplex, chunk: Buffer): void {
    try {
      if (!this.#pass(from, chunk)) from.pause();
    } catch (error) {
      this.#fail(error);
    }
  }

  /** A side accepts more. */
  onDrain(to: Duplex): void {
    this.#otherThan(to).resume();
  }

  /** A side has finished sending. */
  onEnd(from: Duplex): void {
    this.#otherThan(from).end();
    // Data in the other direction restarts the timeout.
    (from as Socket).setTimeout(halfOpenLimitMs, () => this.destroy());
  }

  onClose(from: Duplex): void {
    const other = this.#otherThan(from);
    // After an error, and when the connection was destroyed, the other direction has nothing to wait for.
    if (from.errored || !from.readableEnded || !from.writableFinished) other.destroy();
    try {
      if (from === this.client) this.user?.onClientClosed();
      if (!other.closed) return;
      this.user?.onClosed();
      this.#owner.onClosed(this);
    } catch (error) {
      this.#fail(error);
    }
  }

  #pass(from: Duplex, chunk: Buffer): boolean {
    if (from === this.backend) return this.#writeToClient(chunk);
    this.#hasReceived = true;
    return this.backend.write(chunk);
  }

  #otherThan(end: Duplex): Duplex {
    return end === this.client ? this.backend : this.client;
  }

  #fail(error: unknown): void {
    this.#owner.errorBoundary.failed(error, () => this.destroy());
  }
}

const spliceOf = Symbol('The splice of a connection');

type SpliceEnd = Duplex & { [spliceOf]?: Splice };

function onData(this: SpliceEnd, chunk: Buffer): void {
  this[spliceOf]?.onData(this, chunk);
}

function onDrain(this: SpliceEnd): void {
  this[spliceOf]?.onDrain(this);
}

function onEnd(this: SpliceEnd): void {
  this[spliceOf]?.onEnd(this);
}

function onClose(this: SpliceEnd): void {
  this[spliceOf]?.onClose(this);
}
