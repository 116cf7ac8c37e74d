/** The readings of requests that reached backends, and comparisons of the readings of two proxies. */
import { StrictReader } from './strict-reader.ts';
import type { Message } from './strict-reader.ts';

/** A complete request as a backend reads it: its method and path, and its body. */
export type Reading = readonly [start: string, body: string];

/** A printable name for bytes that a terminal does not show. */
export function shown(text: string): string {
  return JSON.stringify(text).slice(1, -1);
}

/** The reading of a request. */
export function readingOf({ startLine, body }: Message): Reading {
  return [startLine.slice(0, startLine.lastIndexOf(' ')), body];
}

/** The readings of requests to a session, without its path. The proxy answers all other requests itself. */
export function inSession(readings: readonly Reading[], prefix: string): Reading[] {
  return readings.flatMap(([start, body]) => {
    const [method = '', path = ''] = start.split(' ', 2);
    return path === prefix || path.startsWith(`${prefix}/`)
      ? [[`${method} ${start.slice(method.length + 1 + prefix.length)}`, body]]
      : [];
  });
}

export function isSame(one: Reading | undefined, other: Reading | undefined): boolean {
  return one?.[0] === other?.[0] && one?.[1] === other?.[1];
}

/** Whether `some` is a prefix of `all`. */
export function isStartOf(some: readonly Reading[], all: readonly Reading[]): boolean {
  return some.length <= all.length && some.every((each, i) => isSame(each, all[i]));
}

/** All ways to leave out up to `count` of the readings. */
export function leavingOut(readings: readonly Reading[], count: number): (readonly Reading[])[] {
  if (count === 0) return [readings];
  const shorter = readings.map((_reading, i) => readings.toSpliced(i, 1));
  return [readings, ...shorter.flatMap((each) => leavingOut(each, count - 1))];
}

/**
 * Returns the problems of the answers on a connection: they must have one reading and the order of their requests, and none may
 * follow an answer that closes the connection. Answers to requests whose path does not begin with the prefix are ignored.
 */
export function problemsOfAnswers(received: string, requests: readonly Message[], prefix = ''): string[] {
  const reader = new StrictReader({ kind: 'response' });
  reader.push(received);
  reader.end();
  if (reader.problem !== undefined) return [`ambiguous bytes reach the client: ${reader.problem}`];
  const final = reader.messages.filter(({ startLine }) => !startLine.startsWith('HTTP/1.1 1'));
  const good = final
    .filter(({ startLine }) => startLine.startsWith('HTTP/1.1 200'))
    .map(({ body }) => body)
    .filter((body) => inSession([[body, '']], prefix).length > 0);
  // A client that sends invalid bytes after a request may lose the answer to the request.
  const expected = requests.map(({ startLine, body }) => `${startLine} ${body.length}`).slice(0, good.length);
  const problems = String(good) === String(expected) ? [] : [`answers out of order: ${JSON.stringify(received)}`];
  const closing = final.findIndex(({ headers }) =>
    headers.some(([name, value]) => /^connection$/i.test(name) && /close/i.test(value)),
  );
  if (closing >= 0 && closing < final.length - 1) problems.push('an answer follows one that closes the connection');
  return problems;
}
