/** Finds the end of bodies of a known length, in chunks, and until the connection is closed. */

/** Reads the body of one message. */
export interface Body {
  /** Whether the whole body was read. */
  readonly isComplete: boolean;
  /**
   * Reads bytes of a connection. Calls `pass` with the parts to forward, and returns how many of the bytes belong to the body.
   * Throws `MalformedBody`.
   */
  read(bytes: Buffer, pass: (part: Buffer) => void): number;
}

/** The framing of a body is not valid, so that its end is unknown. */
export class MalformedBody extends Error {
  override readonly name = 'MalformedBody';
}

/** A body of a known length. */
export class LengthBody implements Body {
  #left: number;

  constructor(length: number) {
    this.#left = length;
  }

  get isComplete(): boolean {
    return this.#left === 0;
  }

  read(bytes: Buffer, pass: (part: Buffer) => void): number {
    const used = Math.min(this.#left, bytes.length);
    this.#left -= used;
    if (used > 0) pass(used === bytes.length ? bytes : bytes.subarray(0, used));
    return used;
  }
}

/** The body of a message without one. */
export const noBody: Body = new LengthBody(0);

/** A body that ends with the backend's connection. It is forwarded in chunks, so that the client can detect a cut body. */
export class UnboundedBody implements Body {
  readonly isComplete = false;

  read(bytes: Buffer, pass: (part: Buffer) => void): number {
    // A chunk without bytes would end the body.
    if (bytes.length === 0) return 0;
    pass(Buffer.from(`${bytes.length.toString(16)}\r\n`));
    pass(bytes);
    pass(lineEnd);
    return bytes.length;
  }
}

const lineEnd = Buffer.from('\r\n');

/** The end of an unbounded body. */
export const lastChunk = '0\r\n\r\n';
