/**
 * Bytes with one owner. A layer arrives in chunks of 64 KiB, each with its own memory. Leaving that to the garbage collector costs
 * a tenth of the time of a push, and about 100 MB of memory that is not yet collected.
 */

type OwnedBytes = Uint8Array<ArrayBuffer>;

/** Whether these bytes are all of their memory, so that their owner can transfer or free it. */
export function isWhole(bytes: Uint8Array): bytes is OwnedBytes {
  const { buffer } = bytes;
  return buffer instanceof ArrayBuffer && !buffer.resizable && bytes.byteLength === buffer.byteLength;
}

/** These bytes if they are all of their memory, otherwise a copy. */
export function whole(bytes: Uint8Array): OwnedBytes {
  return isWhole(bytes) ? bytes : new Uint8Array(bytes);
}

/** Frees the memory of bytes immediately, if they are all of it. */
export function free(bytes: Uint8Array): void {
  if (isWhole(bytes) && !bytes.buffer.detached) bytes.buffer.transfer(0);
}
