/** The answers that each client connection still waits for. Those of pipelined requests go out one after the other. */
import type { ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';

const unanswered = new WeakMap<Duplex, Set<ServerResponse>>();

/** Counts an answer as owed until it closes, and closes it with its connection: Node closes only the first of several. */
export function followAnswer(socket: Duplex, response: ServerResponse, onClose: () => void): void {
  const answers = unanswered.get(socket) ?? newAnswersOn(socket);
  answers.add(response);
  response.once('close', () => {
    answers.delete(response);
    onClose();
  });
}

/** The answers that a connection still waits for, in order. */
export function unansweredOn(socket: Duplex): ServerResponse[] {
  return [...(unanswered.get(socket) ?? [])];
}

function newAnswersOn(socket: Duplex): Set<ServerResponse> {
  const answers = new Set<ServerResponse>();
  unanswered.set(socket, answers);
  socket.once('close', () => {
    for (const response of answers) response.destroy();
  });
  return answers;
}
