import { Socket } from 'node:net';
import type { Duplex } from 'node:stream';

type OnWritten = (error?: Error | null) => void;

type Chunks = Parameters<NonNullable<Socket['_writev']>>[0];

/** The codes of writes that fail because the other side has closed its connection. What it sent before may not be read yet. */
const closedCodes: ReadonlySet<string | undefined> = new Set(['ECONNRESET', 'EPIPE']);

const writeError = Symbol('The error of the first write that failed');

type KeptSocket = Socket & { [writeError]?: Error };

/**
 * Makes a connection stay open after a failed write until everything that the other side has sent is read. Returns the connection.
 *
 * A server may answer a request before it has read the body, and close its connection: Node destroys a connection when a write fails,
 * and loses the answer (https://github.com/nodejs/node/issues/54366). With this, bytes that are written after the failure are discarded.
 * At its end, the connection has the error of the write, so that an answer without a length does not look complete.
 */
export function readAfterFailedWrite<T extends Socket>(socket: T): T {
  // Thousands of connections may be idle for hours, so they share these functions.
  return Object.assign(socket, { _write: write, push }, socket._writev && { _writev: writeAll });
}

/** Whether a write to a connection has failed: it can be read, but carries no other request. */
export function hasFailedWrite(socket: Duplex): boolean {
  return writeError in socket;
}

function write(this: KeptSocket, chunk: unknown, encoding: BufferEncoding, onWritten: OnWritten): void {
  Socket.prototype._write.call(this, chunk, encoding, (error) => afterWrite(this, error, onWritten));
}

function writeAll(this: KeptSocket, chunks: Chunks, onWritten: OnWritten): void {
  Socket.prototype._writev?.call(this, chunks, (error) => afterWrite(this, error, onWritten));
}

function afterWrite(socket: KeptSocket, error: Error | null | undefined, onWritten: OnWritten): void {
  const isClosed = error && closedCodes.has((error as NodeJS.ErrnoException).code);
  if (!isClosed || socket.readableEnded) {
    onWritten(error);
    return;
  }
  socket[writeError] ??= error;
  onWritten();
}

/** Node calls this with `null` when the other side has sent everything. */
function push(this: KeptSocket, chunk: unknown, encoding?: BufferEncoding): boolean {
  const error = this[writeError];
  if (chunk !== null || !error) return Socket.prototype.push.call(this, chunk, encoding);
  const endWhenRead = () => void (this.readableLength === 0 && this.destroy(error));
  // A paused connection still has bytes.
  this.on('data', endWhenRead);
  endWhenRead();
  return false;
}
