/** The connections to the engine. */
import type { ClientRequest, IncomingMessage } from 'node:http';
import { inspect } from 'node:util';
import { Agent } from '../../core/http/node-http.ts';

/** Keeps connections open between requests. */
export function newEngineAgent(): Agent {
  return new EngineAgent({ keepAlive: true });
}

class EngineAgent extends Agent {
  /**
   * docker-modem formats the options of each request for its debug log, even if that log is off. Formatting an agent with its sockets
   * takes milliseconds.
   */
  [inspect.custom](): string {
    return 'EngineAgent';
  }

  /**
   * docker-modem waits for the end of an answer, but not for its error: a call would never return if the engine dies, or is silent for
   * too long, in the middle of an answer. So the error becomes one of the request.
   */
  addRequest(request: ClientRequest, ...more: unknown[]): void {
    request.prependListener('response', (answer: IncomingMessage) => {
      answer.on('error', (error) => request.emit('error', error));
    });
    // The types lack this method of Node's agents.
    (Agent.prototype as unknown as EngineAgent).addRequest.call(this, request, ...more);
  }
}
