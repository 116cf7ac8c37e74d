import type { Duplex } from 'node:stream';

/**
 * Notices that a client leaves while nobody reads from its connection, until disposed. What it sends meanwhile stays there to
 * be read, up to the size of the connection's buffer.
 */
export function watchLeaving(socket: Duplex): Disposable {
  const read = () => {};
  const leave = () => socket.destroy();
  socket.on('readable', read);
  socket.once('end', leave);
  const stop = () => {
    socket.off('readable', read);
    socket.off('end', leave);
  };
  return { [Symbol.dispose]: stop };
}
