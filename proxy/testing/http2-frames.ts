/** A client that writes HTTP/2 frames itself, for requests that no proper client sends. */
import { once } from 'node:events';
import { connect } from 'node:tls';
import type { TLSSocket } from 'node:tls';

export const frameTypes = {
  data: 0,
  headers: 1,
  rstStream: 3,
  settings: 4,
  ping: 6,
  goAway: 7,
  continuation: 9,
} as const;

export const endStream = 0x1;
export const endHeaders = 0x4;

/** A frame that the server has sent. */
export interface Frame {
  readonly type: number;
  readonly flags: number;
  readonly stream: number;
  readonly payload: Buffer;
}

const frameHeadBytes = 9;

/** One connection. */
export class FrameClient implements Disposable {
  readonly socket: TLSSocket;
  readonly frames: Frame[] = [];
  isClosed = false;
  #rest: Buffer = Buffer.alloc(0);

  private constructor(socket: TLSSocket) {
    this.socket = socket;
    socket.on('error', () => {});
    socket.once('close', () => (this.isClosed = true));
    socket.on('data', (bytes: Buffer) => this.#read(bytes));
  }

  /** Connects, and sends the preface with empty settings. */
  static async open(port: number): Promise<FrameClient> {
    const options = { host: '127.0.0.1', port, ALPNProtocols: ['h2'], rejectUnauthorized: false };
    const socket = connect(options);
    await once(socket, 'secureConnect');
    socket.write('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n');
    const client = new FrameClient(socket);
    client.send(frameTypes.settings, { stream: 0 });
    return client;
  }

  send(type: number, { stream, flags = 0, payload = Buffer.alloc(0) }: Partial<Frame> & { stream: number }): void {
    this.socket.write(frame(type, { stream, flags, payload }));
  }

  /** Sends the head of a request. */
  request(stream: number, headers: readonly string[], { isComplete = true } = {}): void {
    const flags = endHeaders | (isComplete ? endStream : 0);
    this.send(frameTypes.headers, { stream, flags, payload: headerBlock(headers) });
  }

  /** How the server has answered a stream: a status, the code of a reset, or nothing yet. */
  outcome(stream: number): string | undefined {
    const ofStream = this.frames.filter((each) => each.stream === stream);
    const head = ofStream.find(({ type }) => type === frameTypes.headers);
    if (head) return `status ${statusIn(head.payload)}`;
    const reset = ofStream.find(({ type }) => type === frameTypes.rstStream);
    if (reset) return `reset ${reset.payload.readUInt32BE()}`;
    return this.isGone ? 'closed' : undefined;
  }

  /** The part of an answer's body that the server has sent. */
  body(stream: number): string {
    const data = this.frames.filter((each) => each.stream === stream && each.type === frameTypes.data);
    return Buffer.concat(data.map(({ payload }) => payload)).toString();
  }

  /** Whether the server has ended the connection, or is about to. */
  get isGone(): boolean {
    return this.isClosed || this.frames.some(({ type }) => type === frameTypes.goAway);
  }

  [Symbol.dispose](): void {
    this.socket.destroy();
  }

  #read(bytes: Buffer): void {
    this.#rest = Buffer.concat([this.#rest, bytes]);
    while (this.#rest.length >= frameHeadBytes) {
      const end = frameHeadBytes + this.#rest.readUIntBE(0, 3);
      if (this.#rest.length < end) return;
      const [type = 0, flags = 0] = this.#rest.subarray(3, 5);
      const payload = this.#rest.subarray(frameHeadBytes, end);
      this.frames.push({ type, flags, stream: this.#rest.readUInt32BE(5), payload });
      if (type === frameTypes.settings && flags === 0) this.send(frameTypes.settings, { stream: 0, flags: 1 });
      this.#rest = this.#rest.subarray(end);
    }
  }
}

/** The bytes of a frame. */
export function frame(type: number, { stream, flags, payload }: Omit<Frame, 'type'>): Buffer {
  const head = Buffer.alloc(frameHeadBytes);
  head.writeUIntBE(payload.length, 0, 3);
  head[3] = type;
  head[4] = flags;
  head.writeUInt32BE(stream, 5);
  return Buffer.concat([head, payload]);
}

/** Headers as literals without compression (RFC 7541, section 6.2.2): any bytes can be sent. */
export function headerBlock(headers: readonly string[]): Buffer {
  const parts: Buffer[] = [];
  for (let i = 0; i + 1 < headers.length; i += 2) {
    parts.push(Buffer.from([0]), literal(headers[i] ?? ''), literal(headers[i + 1] ?? ''));
  }
  return Buffer.concat(parts);
}

function literal(text: string): Buffer {
  const bytes = Buffer.from(text, 'latin1');
  const lengthBytes: number[] = [];
  let rest = bytes.length;
  if (rest < 127) lengthBytes.push(rest);
  else {
    lengthBytes.push(127);
    for (rest -= 127; rest >= 128; rest = Math.floor(rest / 128)) lengthBytes.push((rest % 128) + 128);
    lengthBytes.push(rest);
  }
  return Buffer.concat([Buffer.from(lengthBytes), bytes]);
}

/** The statuses of the static table (RFC 7541, appendix A), which servers refer to by their index. */
const indexedStatuses = [200, 204, 206, 304, 400, 404, 500];

const firstIndexedStatus = 8;

/** The status at the beginning of a block of headers. */
function statusIn(block: Buffer): string {
  const [first = 0] = block;
  if (first >= 0x80) return String(indexedStatuses[first - 0x80 - firstIndexedStatus] ?? `index ${first - 0x80}`);
  return 'other';
}
