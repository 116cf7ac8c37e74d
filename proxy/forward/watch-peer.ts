import { Socket } from 'node:net';
import type { Duplex } from 'node:stream';

/**
 * A connection on which nothing is said for this long is asked whether anyone is there. Node asks ten times, a second apart:
 * a peer that vanished without a word is noticed within half a minute, also behind most address translations.
 */
const keepAliveAfterMs = 15_000;

const watched = new WeakSet<Duplex>();

/** Makes a connection end when its peer has vanished without a word, so that it does not count as open for ever. */
export function watchPeer(connection: Duplex): void {
  if (watched.has(connection) || !(connection instanceof Socket)) return;
  watched.add(connection);
  connection.setKeepAlive(true, keepAliveAfterMs);
  connection.setNoDelay(true);
}
