/**
 * Reads accepted connections into buffers that are used again. Node does so for connections that it opens (`onread` of
 * `net.connect`), but a server has no such option, and to allocate 64 KiB for each read costs a quarter of a small request.
 */
import { Socket } from 'node:net';

/** Called with the number of bytes in the buffer. */
type OnRead = (length: number, buffer: Buffer) => boolean;

interface Slots {
  readonly buffer: symbol;
  readonly nextBuffer: symbol;
  readonly onRead: symbol;
}

let slots: Slots | undefined | 'unknown' = 'unknown';

/**
 * Makes a connection read into the buffers that `nextBuffer` returns, `undefined` for the same as before. Returns whether that is
 * possible: where it is not, the connection is as before, and has to be read by events.
 */
export function readInto(socket: Socket, nextBuffer: () => Buffer | undefined, onRead: OnRead): boolean {
  if (slots === 'unknown') slots = findSlots();
  const handle = (socket as { _handle?: { useUserBuffer?: (buffer: Buffer) => void } })._handle;
  if (slots === undefined || typeof handle?.useUserBuffer !== 'function') return false;
  if (socket.readableLength > 0) return false;
  const buffer = nextBuffer();
  if (!buffer) return false;
  Object.assign(socket, { [slots.buffer]: buffer, [slots.nextBuffer]: nextBuffer, [slots.onRead]: onRead });
  handle.useUserBuffer(buffer);
  return true;
}

/** Where a connection with `onread` keeps that option. */
function findSlots(): Slots | undefined {
  const sample = new Socket({ onread: { buffer: () => Buffer.alloc(0), callback: () => true } });
  const named = new Map(Object.getOwnPropertySymbols(sample).map((symbol) => [symbol.description, symbol]));
  const buffer = named.get('kBuffer');
  const nextBuffer = named.get('kBufferGen');
  const onRead = named.get('kBufferCb');
  return buffer && nextBuffer && onRead && { buffer, nextBuffer, onRead };
}
