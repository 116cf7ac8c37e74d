/**
 * Memory of bytes that have one owner. A layer goes by in chunks of 64 KiB, each with memory of its own; to leave that to the
 * garbage collector costs a tenth of a push, and a hundred megabytes in which it has not been yet.
 */

type OwnedBytes = Uint8Array<ArrayBuffer>;

/** Whether nothing else is in the memory of these bytes, so that whoever owns them may hand it on whole. */
export function isWhole(bytes: Uint8Array): bytes is OwnedBytes {
  const { buffer } = bytes;
  return buffer instanceof ArrayBuffer && !buffer.resizable && bytes.byteLength === buffer.byteLength;
}

/** These bytes if they are whole, otherwise a copy that is. */
export function whole(bytes: Uint8Array): OwnedBytes {
  return isWhole(bytes) ? bytes : new Uint8Array(bytes);
}

/** Frees the memory of bytes that nobody needs any more, if they are whole: now, not when garbage is collected. */
export function free(bytes: Uint8Array): void {
  if (isWhole(bytes) && !bytes.buffer.detached) bytes.buffer.transfer(0);
}
