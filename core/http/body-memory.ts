/** The memory of request bodies that are being received: each body, those of one account, and all of them have a limit. */

/** The memory for all bodies that are being read: enough for thousands of ordinary ones, and little for a small machine. */
const maxHeldBytes = 32 * 1024 * 1024;

/** The share of one account, so that no account blocks the requests of others. */
const maxAccountBytes = maxHeldBytes / 4;

/** Why a chunk was not added: the body is too large, or other bodies use all the memory. */
export type Full = 'too-large' | 'too-many';

export class BodyMemory {
  readonly #heldBytes = new Map<string, number>();
  #totalBytes = 0;

  /** A body of at most `maxBytes` in the share of an account. Dispose it when it has arrived: its bytes stay valid. */
  begin(account: string, maxBytes: number): HeldBody {
    return new HeldBody(maxBytes, (bytes) => this.#hold(account, bytes));
  }

  /** Changes how many bytes an account holds. Returns whether they fit. */
  #hold(account: string, bytes: number): boolean {
    const held = (this.#heldBytes.get(account) ?? 0) + bytes;
    if (bytes > 0 && (held > maxAccountBytes || this.#totalBytes + bytes > maxHeldBytes)) return false;
    if (held > 0) this.#heldBytes.set(account, held);
    else this.#heldBytes.delete(account);
    this.#totalBytes += bytes;
    return true;
  }
}

/** The received part of a body, in one buffer: a million chunks of one byte would take a hundred times the memory. */
class HeldBody implements Disposable {
  readonly #maxBytes: number;
  readonly #hold: (bytes: number) => boolean;
  #buffer = Buffer.alloc(0);
  #length = 0;

  constructor(maxBytes: number, hold: (bytes: number) => boolean) {
    this.#maxBytes = maxBytes;
    this.#hold = hold;
  }

  get bytes(): Buffer {
    return this.#buffer.subarray(0, this.#length);
  }

  /** Adds a chunk. Returns why it does not fit, if so. */
  add(chunk: Uint8Array): Full | undefined {
    const length = this.#length + chunk.length;
    if (length > this.#maxBytes) return 'too-large';
    if (length > this.#buffer.length && !this.#grow(length)) return 'too-many';
    this.#buffer.set(chunk, this.#length);
    this.#length = length;
    return undefined;
  }

  [Symbol.dispose](): void {
    this.#hold(-this.#buffer.length);
  }

  #grow(leastBytes: number): boolean {
    const size = Math.min(Math.max(leastBytes, 2 * this.#buffer.length), this.#maxBytes);
    if (!this.#hold(size - this.#buffer.length)) return false;
    const larger = Buffer.allocUnsafeSlow(size);
    this.#buffer.copy(larger, 0, 0, this.#length);
    this.#buffer = larger;
    return true;
  }
}
