/** A backend that records the bytes that it receives, and reads them strictly. */
import { createServer } from 'node:net';
import type { AddressInfo, Socket } from 'node:net';
import { StrictReader } from './strict-reader.ts';
import type { Message } from './strict-reader.ts';

/** The bytes of an answer. More can be written to the connection later. */
export type AnswerTo = (request: Message, socket: Socket) => string;

/** Answers with what the request was, so that a client sees which answer belongs to which request. */
export const echoed: AnswerTo = ({ startLine, body }) => {
  const text = `${startLine} ${body.length}`;
  return `HTTP/1.1 200 OK\r\nContent-Length: ${text.length}\r\n\r\n${startLine.startsWith('HEAD ') ? '' : text}`;
};

export class RecordingBackend implements AsyncDisposable {
  readonly #server = createServer((socket) => this.#accept(socket));
  readonly #sockets = new Map<Socket, StrictReader>();
  /** How the next requests are answered. */
  answer: AnswerTo = echoed;
  /** The whole requests since `clear`, in their order. */
  requests: Message[] = [];
  /** Bytes since `clear` that have not exactly one reading. */
  problems: string[] = [];

  /** Listens on a free port of this machine, or on a path. */
  static async open(path?: string): Promise<RecordingBackend> {
    const backend = new RecordingBackend();
    await new Promise<void>((resolve) => {
      if (path === undefined) backend.#server.listen(0, '127.0.0.1', resolve);
      else backend.#server.listen(path, resolve);
    });
    return backend;
  }

  get address(): { host: string; port: number } {
    return { host: '127.0.0.1', port: (this.#server.address() as AddressInfo).port };
  }

  /** Forgets what was recorded. Cuts connections on which a request has begun, so that it cannot become a part of a later one. */
  clear(): void {
    this.requests = [];
    this.problems = [];
    for (const [socket, reader] of this.#sockets) if (reader.pending !== '') socket.destroy();
  }

  /** The start of requests whose rest has not arrived. */
  get partial(): string[] {
    return [...this.#sockets.values()].flatMap(({ pending }) => (pending === '' ? [] : [pending]));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()));
    for (const socket of this.#sockets.keys()) socket.destroy();
    await closed;
  }

  #accept(socket: Socket): void {
    const reader = new StrictReader({ kind: 'request' });
    this.#sockets.set(socket, reader);
    // A later write must not wait until the first one is acknowledged.
    socket.setNoDelay();
    socket.on('error', () => {});
    socket.once('close', () => this.#sockets.delete(socket));
    socket.on('data', (chunk) => {
      for (const request of reader.push(chunk.toString('latin1'))) {
        this.requests.push(request);
        socket.write(this.answer(request, socket), 'latin1');
      }
      if (reader.problem === undefined) return;
      this.problems.push(reader.problem);
      socket.destroy();
    });
  }
}
