import type { Socket } from 'node:net';

type OnWritten = (error?: Error | null) => void;

/** The codes of writes that fail because the other side has closed its connection. What it sent before may not be read yet. */
const closedCodes: ReadonlySet<string | undefined> = new Set(['ECONNRESET', 'EPIPE']);

/**
 * Makes a connection stay open after a failed write until everything that the other side has sent is read. Returns the connection.
 *
 * A server may answer a request before it has read the body, and close its connection: Node destroys a connection when a write fails,
 * and loses the answer (https://github.com/nodejs/node/issues/54366). With this, bytes that are written after the failure are discarded.
 * At its end, the connection has the error of the write, so that an answer without a length does not look complete.
 */
export function readAfterFailedWrite<T extends Socket>(socket: T): T {
  const write = socket._write.bind(socket);
  const writeAll = socket._writev?.bind(socket);
  const push = socket.push.bind(socket);
  let writeError: Error | undefined;
  let isRead = false;
  const afterWrite =
    (onWritten: OnWritten): OnWritten =>
    (error) => {
      if (!error || isRead || !closedCodes.has((error as NodeJS.ErrnoException).code)) {
        onWritten(error);
        return;
      }
      writeError ??= error;
      onWritten();
    };
  socket._write = (chunk, encoding, onWritten) => write(chunk, encoding, afterWrite(onWritten));
  socket._writev = (chunks, onWritten) => writeAll?.(chunks, afterWrite(onWritten));
  // Node calls this with `null` when the other side has sent everything.
  socket.push = (chunk: unknown, encoding) => {
    if (chunk === null) isRead = true;
    if (chunk !== null || !writeError) return push(chunk, encoding);
    socket.destroy(writeError);
    return false;
  };
  return socket;
}
