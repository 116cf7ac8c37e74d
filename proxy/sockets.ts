/** Detects that the other side of a connection has disconnected. */
import { Socket } from 'node:net';
import type { Duplex } from 'node:stream';

/**
 * After this much silence, Node sends up to ten keep-alive probes, a second apart. So a peer that vanished is detected within half
 * a minute, also behind most network address translation.
 */
const keepAliveAfterMs = 15_000;

const keptAlive = new WeakSet<Duplex>();

/** Ends a connection when its peer has vanished without closing it, so that it does not count as open forever. */
export function keepAlive(connection: Duplex): void {
  if (keptAlive.has(connection) || !(connection instanceof Socket)) return;
  keptAlive.add(connection);
  connection.setKeepAlive(true, keepAliveAfterMs);
  connection.setNoDelay(true);
}

/** For `error` events that are followed by `close`, which is handled. One function for all connections. */
export function ignoreError(): void {}

/**
 * Destroys a connection that is not being read when its client closes it, until disposed. Data that the client sends meanwhile
 * stays in the connection's buffer, up to the size of the buffer.
 */
export function destroyOnEnd(socket: Duplex): Disposable {
  const onReadable = () => {};
  const onEnd = () => socket.destroy();
  // With a listener for `readable`, a paused stream reads into its buffer, and so notices the end.
  socket.on('readable', onReadable);
  socket.once('end', onEnd);
  return {
    [Symbol.dispose]: () => {
      socket.off('readable', onReadable);
      socket.off('end', onEnd);
    },
  };
}
