/** What backends read of the requests that reached them, and how the readings of two proxies differ. */
import { StrictReader } from './strict-reader.ts';
import type { Message } from './strict-reader.ts';

/** A whole request as a backend reads it: its method and path, and its body. */
export type Reading = readonly [start: string, body: string];

/** The reading of a request. */
export function readingOf({ startLine, body }: Message): Reading {
  return [startLine.slice(0, startLine.lastIndexOf(' ')), body];
}

/** The readings of requests to a session, without its path. The proxy answers all others itself. */
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

/** Whether `some` are the first of `all`, or all of them. */
export function isStartOf(some: readonly Reading[], all: readonly Reading[]): boolean {
  return some.length <= all.length && some.every((each, i) => isSame(each, all[i]));
}

/** Whether `some` are among `all`, in the same order. A server goes on after a request whose expectation it does not meet (417). */
export function isPartOf(some: readonly Reading[], all: readonly Reading[]): boolean {
  let at = 0;
  for (const each of all) if (at < some.length && isSame(each, some[at])) at += 1;
  return at === some.length;
}

/**
 * What is wrong with the answers to a connection: they have one reading and the order of their requests, and the proxy answers nothing
 * after it has closed the connection with an error. Answers to requests whose path does not begin with the prefix are ignored.
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
  // A client that sends nonsense after a request may lose the answer to it.
  const expected = requests.map(({ startLine, body }) => `${startLine} ${body.length}`).slice(0, good.length);
  const problems = String(good) === String(expected) ? [] : [`answers out of order: ${JSON.stringify(received)}`];
  const closing = final.findIndex(({ headers }) =>
    headers.some(([name, value]) => /^connection$/i.test(name) && /close/i.test(value)),
  );
  if (closing >= 0 && closing < final.length - 1) problems.push('an answer follows after the last one');
  return problems;
}
