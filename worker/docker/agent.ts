/** The connections to the engine. */
import { inspect } from 'node:util';
import { Agent } from '../../core/http/node-http.ts';

/** Keeps connections open between requests. */
export function newEngineAgent(): Agent {
  return new EngineAgent({ keepAlive: true });
}

/**
 * docker-modem formats the options of each request for its debug log, even if that log is off. Formatting an agent with its sockets
 * takes milliseconds.
 */
class EngineAgent extends Agent {
  [inspect.custom](): string {
    return 'EngineAgent';
  }
}
