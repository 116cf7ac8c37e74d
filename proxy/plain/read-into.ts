/**
 * Reads accepted connections into reused buffers. Node does so for connections that it opens (`onread` of `net.connect`), but a server
 * has no such option, and allocating 64 KiB for each read costs a quarter of a small request.
 */
import { Socket } from 'node:net';
import { sharedBuffer } from './read-buffer.ts';

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
 * possible: if not, the connection is unchanged, and the caller must read it by events.
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

/**
 * Makes a connection emit events again, for another reader. It keeps no reference to the previous reader, because it may be open for
 * hours.
 */
export function readByEvents(socket: Socket): void {
  if (slots === undefined || slots === 'unknown') return;
  const inUse = (socket as unknown as Record<symbol, unknown>)[slots.buffer];
  if (inUse instanceof Uint8Array) {
    const next = inUse === sharedBuffer ? null : () => sharedBuffer;
    Object.assign(socket, { [slots.nextBuffer]: next, [slots.onRead]: pushCopy });
  }
}

/** Called as a method of the connection. */
function pushCopy(this: Socket, length: number, buffer: Buffer): boolean {
  return this.push(Buffer.from(buffer.subarray(0, length)));
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
