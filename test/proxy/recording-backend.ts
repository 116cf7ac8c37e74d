/** A backend that records the requests that it receives, and parses them strictly. */
import { createServer } from 'node:net';
import type { AddressInfo, Socket } from 'node:net';
import { StrictReader } from './strict-reader.ts';
import type { Message } from './strict-reader.ts';

/** The bytes of an answer. More can be written to the connection later. */
export type AnswerTo = (request: Message, socket: Socket) => string;

/** Answers with the start line and body length of the request, so that a client sees which answer belongs to which request. */
export const echoed: AnswerTo = ({ startLine, body }) => {
  const text = `${startLine} ${body.length}`;
  return `HTTP/1.1 200 OK\r\nContent-Length: ${text.length}\r\n\r\n${startLine.startsWith('HEAD ') ? '' : text}`;
};

export class RecordingBackend implements AsyncDisposable {
  readonly #server = createServer((socket) => this.#accept(socket));
  readonly #sockets = new Map<Socket, StrictReader>();
  /** Creates the answers to the next requests. */
  answer: AnswerTo = echoed;
  /** The complete requests since `clear`, in their order. */
  requests: Message[] = [];
  /** Problems since `clear`: bytes that do not have exactly one reading. */
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

  /** Deletes the records. Closes connections with an incomplete request, so that it cannot become part of a later request. */
  clear(): void {
    this.requests = [];
    this.problems = [];
    for (const [socket, reader] of this.#sockets) if (reader.pending !== '') socket.destroy();
  }

  /** The received parts of incomplete requests. */
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
    // Later writes must not wait until the first write is acknowledged.
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
