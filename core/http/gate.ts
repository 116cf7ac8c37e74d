import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';

/** What answers behind a gate. Without `upgrade`, a request to upgrade is answered as an ordinary one. */
export interface GateKeeper {
  readonly handle: (request: IncomingMessage, response: ServerResponse) => void;
  readonly upgrade?: (request: IncomingMessage, socket: Duplex, head: Buffer) => void;
}

/** A listener whose room may not be open yet: what comes too early is told to try again. */
export interface Gate {
  open(keeper: GateKeeper): void;
}

/** Puts a gate in front of a server. */
export function installGate(server: Server): Gate {
  let handle: GateKeeper['handle'] = answerTooEarly;
  server.on('request', (request, response) => handle(request, response));
  return {
    open: (keeper) => {
      handle = keeper.handle;
      if (keeper.upgrade) server.on('upgrade', keeper.upgrade);
    },
  };
}

function answerTooEarly(_request: IncomingMessage, response: ServerResponse): void {
  response.writeHead(503, { 'retry-after': '1', 'content-type': 'text/plain' });
  response.end('Starting, try again in a second\n');
}
