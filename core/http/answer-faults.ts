import type { ServerResponse } from 'node:http';

/**
 * Does the work of an event's listener. Nothing above a listener catches, so a client whose request fails there would wait for
 * ever: `answer` answers it, or cuts it off. The error itself is thrown on, as a stray one: the process decides about it.
 */
export async function answerFaults(work: () => void | Promise<void>, answer: () => void): Promise<void> {
  try {
    await work();
  } catch (error) {
    answer();
    throw error;
  }
}

/** Answers a request that failed for a reason that no code expected; an answer that has begun is cut. */
export function answerFault(response: ServerResponse): void {
  if (response.headersSent) {
    response.destroy();
    return;
  }
  for (const name of response.getHeaderNames()) response.removeHeader(name);
  response.writeHead(500, { 'content-type': 'text/plain', connection: 'close' });
  response.end('Something went wrong on our side\n');
}
