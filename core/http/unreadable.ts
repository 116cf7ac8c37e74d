/** Requests that cannot be read as HTTP. No handler ever sees them, and Node answers them with a bare status. */
import { STATUS_CODES } from 'node:http';
import type { Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { answerFaults } from './answer-faults.ts';

/** What is wrong with a request, and the status that says so. */
const unreadableStatuses = { malformed: 400, 'head-too-slow': 408, 'head-too-large': 431 } as const;

export type Unreadable = keyof typeof unreadableStatuses;

/** What Node's parser calls them; all else is malformed. */
const codes: Readonly<Record<string, Unreadable>> = {
  HPE_HEADER_OVERFLOW: 'head-too-large',
  ERR_HTTP_REQUEST_TIMEOUT: 'head-too-slow',
};

/**
 * Has a server answer what it cannot read with JSON, or in plain words where there is none, and close the connection: where a
 * next request begins is not known.
 */
export function answerUnreadable(server: Server, bodyOf: (problem: Unreadable) => object | undefined): void {
  const answers = new WeakMap<Duplex, ServerResponse[]>();
  // Without listening to the answers: whoever sends them listens enough.
  const openOn = (socket: Duplex) => (answers.get(socket) ?? []).filter(({ writableFinished }) => !writableFinished);
  server.on('request', ({ socket }, response) => answers.set(socket, [...openOn(socket), response]));
  const explain = (error: NodeJS.ErrnoException, socket: Duplex) => {
    // An answer that has begun would be torn apart.
    const isAnswering = openOn(socket).some(({ headersSent }) => headersSent);
    if (!socket.writable || isAnswering || error.code === 'ECONNRESET') {
      socket.destroy();
      return;
    }
    const problem = codes[error.code ?? ''] ?? 'malformed';
    socket.write(rawAnswer(unreadableStatuses[problem], bodyOf(problem)));
    (socket as Socket).destroySoon();
  };
  server.on('clientError', (error, socket) => {
    void answerFaults(
      () => explain(error, socket),
      () => socket.destroy(),
    );
  });
}

function rawAnswer(status: number, body: object | undefined): string {
  const text = body ? JSON.stringify(body) : `${STATUS_CODES[status]}\n`;
  const lines = [
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}`,
    'connection: close',
    `content-type: ${body ? 'application/json' : 'text/plain'}`,
    `content-length: ${Buffer.byteLength(text)}`,
  ];
  return `${lines.join('\r\n')}\r\n\r\n${text}`;
}
