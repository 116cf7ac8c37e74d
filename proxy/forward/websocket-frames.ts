/** Frames of the WebSocket protocol (RFC 6455, section 5), as far as the proxy sends and follows them. */

const opcodes = { continuation: 0x0, text: 0x1, binary: 0x2, close: 0x8, ping: 0x9, pong: 0xa };

const knownOpcodes: ReadonlySet<number> = new Set(Object.values(opcodes));

/** The first byte of a frame: the last of its message, and the operation. */
const finBit = 0x80;
const opcodeBits = 0x0f;

/** The second byte: whether the payload is masked, and its length or the form of its length. */
const maskBit = 0x80;
const lengthBits = 0x7f;
const shortLength = 126;
const longLength = 127;

/** The longest head of a frame without a mask. */
const maxHeadBytes = 10;

/** A Ping without a payload, as a server sends it. */
export const pingFrame: Buffer = Buffer.from([finBit | opcodes.ping, 0]);

/** A Close frame, as a server sends it. The reason has at most 123 bytes. */
export function closeFrame(code: number, reason: string): Buffer {
  const text = Buffer.from(reason);
  const frame = Buffer.alloc(4 + text.length);
  frame[0] = finBit | opcodes.close;
  frame[1] = 2 + text.length;
  frame.writeUInt16BE(code, 2);
  frame.set(text, 4);
  return frame;
}

/**
 * Follows the bytes of a WebSocket server, to find the places between two frames. Only there may the proxy insert its own frames:
 * control frames may stand between the frames of a message.
 */
export class FrameTracker {
  /** A head that has arrived in part. */
  #head: Buffer | undefined;
  #headLength = 0;
  /** How many bytes of the payload are still to come. */
  #payloadLeft = 0;
  #hasEnded = false;

  /** Whether no frame may follow: the server has sent a Close frame, or something that is no frame. */
  get hasEnded(): boolean {
    return this.#hasEnded;
  }

  /** Whether the next byte is the first of a frame. */
  get isBetweenFrames(): boolean {
    return !this.#hasEnded && this.#payloadLeft === 0 && this.#headLength === 0;
  }

  /** Follows the next bytes. Returns the last position in them where a frame ends and another may begin, -1 if there is none. */
  read(chunk: Buffer): number {
    let end = -1;
    let at = 0;
    while (at < chunk.length && !this.#hasEnded) {
      if (this.#payloadLeft > 0) {
        const taken = Math.min(this.#payloadLeft, chunk.length - at);
        this.#payloadLeft -= taken;
        at += taken;
      } else {
        at = this.#readHead(chunk, at);
      }
      if (this.isBetweenFrames) end = at;
    }
    return end;
  }

  /** Reads a head, or the part that has arrived. Returns the position after it. */
  #readHead(chunk: Buffer, at: number): number {
    if (this.#headLength === 0) {
      const length = headLength(chunk, at, chunk.length);
      if (length !== undefined) {
        this.#begin(chunk, at);
        return at + length;
      }
    }
    const head = (this.#head ??= Buffer.alloc(maxHeadBytes));
    for (let i = at; i < chunk.length; i += 1) {
      head[this.#headLength] = chunk[i] as number;
      this.#headLength += 1;
      if (headLength(head, 0, this.#headLength) !== this.#headLength) continue;
      this.#headLength = 0;
      this.#head = undefined;
      this.#begin(head, 0);
      return i + 1;
    }
    return chunk.length;
  }

  #begin(head: Buffer, at: number): void {
    const first = head[at] as number;
    const opcode = first & opcodeBits;
    const length = payloadLength(head, at);
    const isControl = opcode >= opcodes.close;
    const isValid =
      knownOpcodes.has(opcode) &&
      ((head[at + 1] as number) & maskBit) === 0 &&
      Number.isSafeInteger(length) &&
      !(isControl && (length >= shortLength || (first & finBit) === 0));
    if (!isValid || opcode === opcodes.close) this.#hasEnded = true;
    this.#payloadLeft = length;
  }
}

/** The length of the head that begins at a position, `undefined` while too little of it has arrived. */
function headLength(bytes: Buffer, at: number, end: number): number | undefined {
  if (end - at < 2) return undefined;
  const form = (bytes[at + 1] as number) & lengthBits;
  const length = form === longLength ? 10 : form === shortLength ? 4 : 2;
  return end - at < length ? undefined : length;
}

function payloadLength(head: Buffer, at: number): number {
  const form = (head[at + 1] as number) & lengthBits;
  if (form < shortLength) return form;
  if (form === shortLength) return head.readUInt16BE(at + 2);
  return head.readUInt32BE(at + 2) * 2 ** 32 + head.readUInt32BE(at + 6);
}
