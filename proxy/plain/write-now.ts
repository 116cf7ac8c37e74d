/**
 * Writes texts to connections without Node's stream, whose bookkeeping of two writes costs more than all that is decided about a small
 * request. The system nearly always takes a text at once, and then there is nothing to keep.
 */
import type { Socket } from 'node:net';
import type { TLSSocket } from 'node:tls';

/** Node's handle of a connection. */
interface Handle {
  /** Returns 0, or the number of an error; then nothing was written. The request is only used if the system does not take all at once. */
  writeLatin1String(request: WriteRequest, text: string): number;
}

interface WriteRequest {
  oncomplete?: (status: number) => void;
}

/** What Node's streams use to write. */
interface Binding {
  readonly WriteWrap: new () => WriteRequest;
  readonly streamBaseState: Int32Array;
  /** Where the state says that the last write is not complete. */
  readonly kLastWriteWasAsync: number;
}

const binding = findBinding();

/** For the next write that the system does not take at once. */
let request: WriteRequest | undefined = binding && new binding.WriteWrap();

/** Whether a connection can be written so. With TLS, what is written may wait for what is read. */
export function canWriteNow(socket: Socket): boolean {
  return binding !== undefined && (socket as Partial<TLSSocket>).encrypted !== true;
}

/**
 * Writes text in Latin-1 to a connection that has nothing to write. `onComplete` is called when the system has all of it, unless it has
 * it at once. `failed`: nothing was written, and a write to the stream reports why.
 */
export function writeNow(socket: Socket, text: string, onComplete: () => unknown): 'complete' | 'waits' | 'failed' {
  const handle = (socket as { _handle?: Handle | null })._handle;
  if (!binding || !request || !handle || handle.writeLatin1String(request, text) !== 0) return 'failed';
  if (binding.streamBaseState[binding.kLastWriteWasAsync] === 0) return 'complete';
  request.oncomplete = (status) => {
    if (status === 0) onComplete();
    else if (!socket.destroyed) socket.destroy(new Error('The connection cannot be written'));
  };
  request = new binding.WriteWrap();
  return 'waits';
}

/** `undefined` in a Node that writes in another way. */
function findBinding(): Binding | undefined {
  try {
    const { binding: bindingOf } = process as unknown as { binding: (name: string) => Partial<Binding> };
    const { WriteWrap, streamBaseState, kLastWriteWasAsync } = bindingOf.call(process, 'stream_wrap');
    return WriteWrap && streamBaseState && kLastWriteWasAsync !== undefined
      ? { WriteWrap, streamBaseState, kLastWriteWasAsync }
      : undefined;
  } catch {
    return undefined;
  }
}
